#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "api/cli/top/CursesScreen.h"
#include "api/cli/top/OverviewPoller.h"
#include "api/cli/top/ScreenText.h"
#include "api/cli/top/Top.h"
#include "base/Error.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::milliseconds kUsualInterval{2'000};
constexpr int kTickMillis = 1'000;  ///< ages and countdowns show seconds

/// The signals of a terminal, as a descriptor; blocked for this thread and the threads it starts.
class TerminalSignals {
public:
    TerminalSignals() {
        sigset_t set;
        ::sigemptyset(&set);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
            ::sigaddset(&set, signal);
        }
        ::pthread_sigmask(SIG_BLOCK, &set, &before_);
        fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        if (fd_) return;
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        throwErrno("signalfd");
    }
    ~TerminalSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    TerminalSignals(const TerminalSignals&) = delete;
    TerminalSignals& operator=(const TerminalSignals&) = delete;

    int fd() const { return fd_.get(); }
    /// The next signal that has come; 0: none.
    int next() const {
        signalfd_siginfo info{};
        if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
        return static_cast<int>(info.ssi_signo);
    }

private:
    sigset_t before_{};
    Fd fd_;
};

/// The loop of keys, signals and news on the main thread.
class TopLoop {
public:
    TopLoop(const Options& options, TopState state, bool colours)
        : state_(std::move(state)),
          poller_(options, state_.interval()),
          screen_(colours),
          news_(poller_.take()) {}

    /// Returns the exit status.
    int run() {
        while (!status_) {
            draw();
            std::array<pollfd, 3> fds = {{{STDIN_FILENO, POLLIN, 0},
                                          {signals_.fd(), POLLIN, 0},
                                          {poller_.changed(), POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), kTickMillis) < 0 && errno != EINTR) {
                throwErrno("poll");
            }
            while (const int signal = signals_.next()) onSignal(signal);
            if (fds[2].revents != 0) onNews();
            if ((fds[0].revents & (POLLHUP | POLLERR)) != 0) status_ = 128 + SIGHUP;
            for (const KeyPress& pressed : screen_.keys()) {
                if (!status_) onKey(pressed);
            }
        }
        return *status_;
    }

private:
    Connection connection() const {
        const auto left =
            std::chrono::ceil<std::chrono::seconds>(news_.next - OverviewPoller::Steady::now());
        return {news_.failure, std::max(left, std::chrono::seconds(0))};
    }

    void draw() {
        screen_.draw(composeScreen(news_.overview, news_.detail, state_, connection(),
                                   screen_.size(), std::chrono::system_clock::now()));
    }

    void onSignal(int signal) {
        if (signal == SIGWINCH) {
            screen_.resize();
        } else if (signal == SIGTSTP) {
            screen_.suspend();
            ::raise(SIGSTOP);  // returns when the process is continued
            screen_.resize();
        } else {
            status_ = 128 + signal;
        }
    }

    void onNews() {
        news_ = poller_.take();
        if (!news_.remark.empty()) {
            const Utf8Locale utf8;
            state_.say(cellText(news_.remark));
        }
        if (news_.gone && state_.showsDetail() && news_.detail.id == state_.target()) {
            state_.browse();
            state_.say("workspace " + shortId(state_.target()) + " has ended");
            poller_.follow("");
        }
    }

    void onKey(const KeyPress& pressed) {
        const Utf8Locale utf8;
        const auto now = std::chrono::system_clock::now();
        const std::size_t page =
            pageRows(news_.overview, state_, connection(), screen_.size(), now);
        const TopAction action = state_.press(pressed, news_.overview, page, now);
        switch (action.kind) {
            case TopAction::Kind::None:
                break;
            case TopAction::Kind::Quit:
                status_ = kOk;
                break;
            case TopAction::Kind::Open:
                poller_.follow(action.id);
                break;
            case TopAction::Kind::Back:
                poller_.follow("");
                break;
            case TopAction::Kind::End:
                state_.say("ending " + shortId(action.id) + " …");
                poller_.follow("");
                poller_.end(action.id);
                break;
            case TopAction::Kind::Refresh:
                poller_.pace(state_.interval(), state_.paused());
                break;
        }
    }

    TerminalSignals signals_;  // first: threads inherit its blocked signals
    TopState state_;
    OverviewPoller poller_;
    CursesScreen
        screen_;  // after the poller: the terminal is restored before the poller's thread is joined
    OverviewPoller::News news_;
    std::optional<int> status_;
};

TopState stateOf(const Options& options) {
    const auto interval = options.duration("interval").value_or(kUsualInterval);
    if (interval < kShortestInterval || interval > kLongestInterval) {
        throw UsageError("--interval is " + formatDuration(interval), "give 0.5 to 60 seconds");
    }
    TopState state(interval);
    if (const auto column = options.get("sort"); column && !state.sortBy(*column)) {
        std::vector<std::string> names;
        for (const auto* columns : {&poolColumns(), &workspaceColumns()}) {
            for (const TopColumn& one : *columns) {
                if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
            }
        }
        throw unknownWord("there is no column \"" + *column + "\"", *column, names);
    }
    const Utf8Locale utf8;
    state.filterBy(cellText(options.get("filter", "")));
    return state;
}

int top(const Invocation& call) {
    TopState state = stateOf(call.options);
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    if (terminal && !call.options.on("once")) {
        return TopLoop(call.options, std::move(state), call.console.out_colour).run();
    }
    Remote remote(call.options);
    OverviewReader reader(remote);
    const auto now = std::chrono::system_clock::now();
    call.console.out << composeText(reader.read(now), state, now);
    return kOk;
}

}  // namespace

Command makeTop() {
    return {
        {.name = "top",
         .arguments = "",
         .summary = "Watch pools and workspaces live.",
         .details =
             "  hearth top                             in a terminal; ? shows the keys\n"
             "  hearth top --filter red --sort age     rows with that text, the youngest first\n"
             "  hearth top --once                      as text, for scripts\n\n"
             "Numbers of claims are of the workspaces that it saw in the last minute. Without\n"
             "a terminal it prints once.",
         .flags = withClientFlags(
             {Flag{.name = "interval",
                   .value = "SECONDS",
                   .help = "Between two looks at the server, 0.5 to 60",
                   .fallback = "2",
                   .environment = false},
              Flag{.name = "sort",
                   .value = "COLUMN",
                   .help = "The column to sort by, of the lists that have it",
                   .environment = false},
              Flag{.name = "filter",
                   .value = "TEXT",
                   .help = "Only rows with this text in some column",
                   .environment = false},
              Flag{.name = "once", .help = "Print it once and exit", .environment = false}})},
        top};
}

}  // namespace hearth::cli
