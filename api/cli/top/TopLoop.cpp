#include "api/cli/top/TopLoop.h"

// NOLINTBEGIN(readability-identifier-naming): the library looks for these names
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
// NOLINTEND(readability-identifier-naming)
#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termcap.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "api/cli/remote/SignalFd.h"
#include "api/cli/top/Poller.h"
#include "api/cli/top/Screen.h"
#include "base/Error.h"
#include "base/JsonText.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::milliseconds kTick{1'000};  ///< ages and countdowns show seconds
constexpr short kAlarmPair = 1;
constexpr int kEscapeMillis = 25;  ///< from Esc to the other bytes of a key

/// The character or Key of a code that ncurses read; 0: no key of ours.
char32_t keyOf(wint_t code, bool special) {
    static const std::map<wint_t, Key::Code> keys = {
        {KEY_UP, Key::Up},          {KEY_DOWN, Key::Down},   {KEY_PPAGE, Key::PageUp},
        {KEY_NPAGE, Key::PageDown}, {KEY_HOME, Key::Home},   {KEY_END, Key::End},
        {KEY_DC, Key::Delete},      {KEY_ENTER, Key::Enter}, {KEY_BACKSPACE, Key::Backspace},
        {'\t', Key::Tab},           {'\r', Key::Enter},      {'\n', Key::Enter},
        {27, Key::Escape},          {8, Key::Backspace},     {127, Key::Backspace}};
    // Only as a special code, a number above ASCII is not a character.
    const auto found = keys.find(special || code < 0x80 ? code : 0);
    if (found != keys.end()) return found->second;
    return special ? 0 : static_cast<char32_t>(code);
}

/// The user's terminal while `hearth top` draws on it. The destructor restores it. One at a time,
/// for one thread; ncurses keeps its state for the process.
class CursesScreen {
public:
    /// Takes standard input and output.
    explicit CursesScreen(bool colours) {
        const char* term = std::getenv("TERM");
        const std::string name = term == nullptr ? "" : term;
        const bool known = !name.empty() && ::tgetent(nullptr, name.c_str()) == 1;
        if (known && ::tgetstr("cm", nullptr) != nullptr) {  // its cursor can be moved
            std::setlocale(LC_CTYPE, "");  // ncurses writes characters in this locale
            screen_ = ::newterm(nullptr, stdout, stdin);
        }
        if (screen_ == nullptr) {
            throw UsageError(
                "the terminal cannot show a screen: TERM is \"" + name + "\"",
                "print the overview once with `hearth top --once`, or set TERM to what "
                "the terminal is");
        }
        unicode_ = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
        ::cbreak();
        ::noecho();
        ::nonl();
        ::set_escdelay(kEscapeMillis);
        ::keypad(stdscr, true);
        ::nodelay(stdscr, true);
        ::curs_set(0);
        if (!colours || !::has_colors()) return;
        ::start_color();
        const bool red =
            ::use_default_colors() == OK && ::init_pair(kAlarmPair, COLOR_RED, -1) == OK;
        if (red) alarm_ |= static_cast<unsigned>(COLOR_PAIR(kAlarmPair));
    }
    ~CursesScreen() {
        ::endwin();
        ::delscreen(screen_);
    }
    CursesScreen(const CursesScreen&) = delete;
    CursesScreen& operator=(const CursesScreen&) = delete;

    /// Sends what has changed since the last call.
    void draw(const Screen& lines) {
        // In the order of LineStyle.
        const std::array<attr_t, 6> attributes = {A_NORMAL,    A_BOLD,    A_DIM,
                                                  A_UNDERLINE, A_REVERSE, alarm_};
        ::werase(stdscr);
        for (std::size_t row = 0; row < lines.size(); ++row) {
            const std::wstring text = shown(lines[row].text);
            const attr_t style = attributes.at(static_cast<std::size_t>(lines[row].style));
            ::wmove(stdscr, static_cast<int>(row), 0);
            ::wattrset(stdscr, static_cast<int>(style));
            ::waddnwstr(stdscr, text.c_str(), static_cast<int>(text.size()));
        }
        ::wattrset(stdscr, A_NORMAL);
        ::wrefresh(stdscr);
    }

    /// The characters and Keys typed since the last call; waits no longer than one key's bytes
    /// take.
    std::u32string keys() {
        std::u32string typed;
        wint_t code = 0;
        for (int kind = ::wget_wch(stdscr, &code); kind != ERR; kind = ::wget_wch(stdscr, &code)) {
            const char32_t key = keyOf(code, kind == KEY_CODE_YES);
            if (key != 0) typed += key;
        }
        return typed;
    }

    /// Takes over a new size of the window; call it after SIGWINCH.
    void resize() {
        winsize window{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0) return;
        ::resizeterm(window.ws_row, window.ws_col);
        ::clearok(stdscr, true);
    }

    /// Gives the terminal back for a while; the next draw() takes it again.
    void suspend() {
        ::endwin();
        ::clearok(stdscr, true);
    }

    ScreenSize size() const {
        return {static_cast<std::size_t>(std::max(::getmaxx(stdscr), 0)),
                static_cast<std::size_t>(std::max(::getmaxy(stdscr), 0))};
    }

private:
    /// In a locale without Unicode, shows '?' for characters that the terminal cannot show.
    std::wstring shown(std::string_view text) const {
        std::wstring out;
        while (!text.empty()) {
            const std::string_view character = firstCharacter(text);
            text.remove_prefix(character.size());
            const char32_t point = codePointOf(character);
            if (unicode_ || point < 0x80) {
                out += static_cast<wchar_t>(point);
            } else {
                out.append(columnsOf(character), point == U'…' ? L'~' : L'?');
            }
        }
        return out;
    }

    SCREEN* screen_ = nullptr;
    bool unicode_ = false;
    attr_t alarm_ = A_BOLD;  ///< the attributes of LineStyle::Alarm
};

/// The exit status that a signal asks for; nullopt: go on.
std::optional<int> obey(int signal, CursesScreen& screen) {
    if (signal == SIGTSTP) {
        screen.suspend();
        ::raise(SIGSTOP);  // returns when the process is continued
    } else if (signal != SIGWINCH) {
        return 128 + signal;
    }
    screen.resize();
    return std::nullopt;
}

}  // namespace

int runTopLoop(const Options& options, TopState state, bool colours) {
    const SignalFd signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    Poller poller(options);
    CursesScreen screen(colours);  // restores the terminal before the poller ends its thread
    const auto frame = [&](WallTime now) {
        return composeFrame(poller.overview(), state, screen.size(), now);
    };
    std::optional<int> status;
    while (!status) {
        const auto wait = std::min(poller.follow(state), kTick);
        screen.draw(frame(std::chrono::system_clock::now()).lines);
        std::array<pollfd, 3> fds = {
            {{STDIN_FILENO, POLLIN, 0}, {signals.get(), POLLIN, 0}, {poller.changed(), POLLIN, 0}}};
        if (::poll(fds.data(), fds.size(), static_cast<int>(wait.count())) < 0 && errno != EINTR) {
            throwErrno("poll");
        }
        while (const int signal = signals.next()) {
            if (const auto end = obey(signal, screen)) status = end;
        }
        if (fds[2].revents != 0) poller.take(state);
        if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) status = 128 + SIGHUP;
        for (const char32_t key : screen.keys()) {
            if (status) break;
            const WallTime now = std::chrono::system_clock::now();
            state.press(key, poller.overview(), frame(now).page, now);
            poller.follow(state);
            if (state.quit) status = kOk;
        }
    }
    return *status;
}

}  // namespace hearth::cli
