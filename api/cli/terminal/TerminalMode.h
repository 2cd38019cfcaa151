#pragma once

#include <termios.h>

#include "base/Mutex.h"

namespace hearth::cli {

/// The size of a terminal in characters.
struct TerminalSize {
    unsigned cols = 80;
    unsigned rows = 24;
    friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

/// The mode of the user's terminal. It is restored in every case except SIGKILL. Thread-safe: a
/// signal's thread may restore it while another one writes.
class TerminalMode {
public:
    /// Does not change anything yet. Throws system_error if `fd` is no terminal.
    explicit TerminalMode(int fd);
    ~TerminalMode();
    TerminalMode(const TerminalMode&) = delete;
    TerminalMode& operator=(const TerminalMode&) = delete;

    /// Passes every key unchanged, without echo.
    void raw() noexcept;
    void restore() noexcept;
    /// The present size, within the server's limits (1 to 1000); 80 x 24 if unknown.
    TerminalSize size() const noexcept;

private:
    const int fd_;
    termios before_{};
    Mutex mutex_;
    bool raw_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::cli
