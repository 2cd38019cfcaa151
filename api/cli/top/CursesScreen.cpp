#include "api/cli/top/CursesScreen.h"

// NOLINTBEGIN(readability-identifier-naming): the library looks for these names
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
// NOLINTEND(readability-identifier-naming)
#include <curses.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>

#include "api/cli/top/CursorCheck.h"
#include "api/cli/top/ScreenText.h"
#include "api/command/Options.h"
#include "base/JsonText.h"

namespace hearth::cli {
namespace {

constexpr short kAlarmPair = 1;
constexpr int kEscapeMillis = 25;  ///< from Esc to the other bytes of a key

KeyPress keyOf(wint_t code, bool special) {
    if (special) {
        switch (code) {
            case KEY_UP:
                return {Key::Up};
            case KEY_DOWN:
                return {Key::Down};
            case KEY_PPAGE:
                return {Key::PageUp};
            case KEY_NPAGE:
                return {Key::PageDown};
            case KEY_HOME:
                return {Key::Home};
            case KEY_END:
                return {Key::End};
            case KEY_DC:
                return {Key::Delete};
            case KEY_BACKSPACE:
                return {Key::Backspace};
            case KEY_ENTER:
                return {Key::Enter};
            default:
                return {Key::Character, 0};
        }
    }
    switch (code) {
        case L'\t':
            return {Key::Tab};
        case L'\r':
        case L'\n':
            return {Key::Enter};
        case 27:
            return {Key::Escape};
        case 8:
        case 127:
            return {Key::Backspace};
        default:
            return {Key::Character, static_cast<char32_t>(code)};
    }
}

}  // namespace

struct CursesScreen::Terminal {
    explicit Terminal(SCREEN* made) : screen(made) {}
    ~Terminal() {
        ::endwin();
        ::delscreen(screen);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    attr_t attributesOf(CellStyle style) const {
        switch (style) {
            case CellStyle::Bold:
                return A_BOLD;
            case CellStyle::Dim:
                return A_DIM;
            case CellStyle::Heading:
                return A_UNDERLINE;
            case CellStyle::Selected:
                return A_REVERSE;
            case CellStyle::Alarm:
                return A_BOLD | (colours ? static_cast<attr_t>(COLOR_PAIR(kAlarmPair)) : 0);
            case CellStyle::Plain:
                break;
        }
        return A_NORMAL;
    }

    /// In a locale without Unicode, shows '?' for characters that the terminal cannot show.
    std::wstring shown(std::string_view text) const {
        std::wstring out;
        while (!text.empty()) {
            const std::string_view character = firstCharacter(text);
            text.remove_prefix(character.size());
            const char32_t point = codePointOf(character);
            if (unicode || point < 0x80) {
                out += static_cast<wchar_t>(point);
            } else {
                out.append(columnsOf(character), point == U'…' ? L'~' : L'?');
            }
        }
        return out;
    }

    SCREEN* screen;
    bool colours = false;
    bool unicode = false;
};

CursesScreen::CursesScreen(bool colours) {
    const char* name = std::getenv("TERM");
    const auto refuse = [&]() -> UsageError {
        return UsageError("the terminal cannot show a screen: TERM is \"" +
                              std::string(name == nullptr ? "" : name) + "\"",
                          "print the overview once with `hearth top --once`, or set TERM to what "
                          "the terminal is");
    };
    if (name == nullptr || *name == '\0' || !cursorMoves()) throw refuse();
    std::setlocale(LC_CTYPE, "");  // ncurses writes characters in this locale
    SCREEN* made = ::newterm(nullptr, stdout, stdin);
    if (made == nullptr) throw refuse();
    terminal_ = std::make_unique<Terminal>(made);
    terminal_->unicode = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
    ::cbreak();
    ::noecho();
    ::nonl();
    ::set_escdelay(kEscapeMillis);
    ::keypad(stdscr, true);
    ::nodelay(stdscr, true);
    ::curs_set(0);
    if (!colours || !::has_colors()) return;
    ::start_color();
    terminal_->colours =
        ::use_default_colors() == OK && ::init_pair(kAlarmPair, COLOR_RED, -1) == OK;
}

CursesScreen::~CursesScreen() = default;

void CursesScreen::draw(const Screen& lines) {
    const Utf8Locale utf8;
    ::werase(stdscr);
    for (std::size_t row = 0; row < lines.size(); ++row) {
        ::wmove(stdscr, static_cast<int>(row), 0);
        for (const StyledText& part : lines[row]) {
            const std::wstring text = terminal_->shown(part.text);
            ::wattrset(stdscr, static_cast<int>(terminal_->attributesOf(part.style)));
            ::waddnwstr(stdscr, text.c_str(), static_cast<int>(text.size()));
        }
    }
    ::wattrset(stdscr, A_NORMAL);
    ::wrefresh(stdscr);
}

std::vector<KeyPress> CursesScreen::keys() {
    std::vector<KeyPress> typed;
    wint_t code = 0;
    for (int kind = ::wget_wch(stdscr, &code); kind != ERR; kind = ::wget_wch(stdscr, &code)) {
        const KeyPress pressed = keyOf(code, kind == KEY_CODE_YES);
        if (pressed.key != Key::Character || pressed.character != 0) typed.push_back(pressed);
    }
    return typed;
}

void CursesScreen::resize() {
    winsize told{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0 || told.ws_row == 0) return;
    ::resizeterm(told.ws_row, told.ws_col);
    ::clearok(stdscr, true);
}

void CursesScreen::suspend() {
    ::endwin();
    ::clearok(stdscr, true);
}

ScreenSize CursesScreen::size() const {
    const int rows = ::getmaxy(stdscr);
    const int columns = ::getmaxx(stdscr);
    return {static_cast<std::size_t>(columns > 0 ? columns : 0),
            static_cast<std::size_t>(rows > 0 ? rows : 0)};
}

}  // namespace hearth::cli
