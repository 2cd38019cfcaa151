#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/SignalFd.h"
#include "api/cli/terminal/EscapeKeys.h"
#include "api/cli/terminal/TerminalMode.h"
#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::cli {

/// The user's side of a shell: sends keys and changes of the window's size to the execution. It
/// also handles signals: SIGTERM, SIGHUP, SIGQUIT and SIGINT from outside kill the execution (keys
/// such as Ctrl-C are bytes for the program), SIGTSTP restores the terminal while this process is
/// stopped. If the server cannot be reached, or at a second such signal, the terminal is restored
/// and the program ends.
///
/// Construct it before other threads start: it blocks these signals in the constructing thread.
class ShellInput {
public:
    ShellInput(const Remote& remote, TerminalMode& terminal);
    ~ShellInput();
    ShellInput(const ShellInput&) = delete;
    ShellInput& operator=(const ShellInput&) = delete;

    /// Sends keys to this execution from now on, and makes the terminal raw. `size` is the size
    /// that the server knows. Only the first call counts. Thread-safe.
    void start(const std::string& execution, TerminalSize size);
    /// The signal that ended the shell from outside; 0: none.
    int endedBy() const { return ended_by_; }

private:
    void watch();
    void onSignal(int signal);
    void onKeys();
    void stopLikeOthers();
    void resize();
    void kill() noexcept;
    std::string execution() const;

    Remote remote_;
    TerminalMode& terminal_;
    SignalFd signals_{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    Fd wake_;
    EscapeKeys escape_;
    bool hung_up_ = false;  ///< no more keys are read
    std::atomic<bool> done_{false};
    std::atomic<int> ended_by_{0};
    mutable Mutex mutex_;
    std::string execution_ HEARTH_GUARDED_BY(mutex_);
    TerminalSize told_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::cli
