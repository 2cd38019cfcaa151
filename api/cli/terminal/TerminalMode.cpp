#include "api/cli/terminal/TerminalMode.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "base/Error.h"

namespace hearth::cli {

TerminalMode::TerminalMode(int fd) : fd_(fd) {
    if (::tcgetattr(fd_, &before_) != 0) throwErrno("tcgetattr");
}

TerminalMode::~TerminalMode() {
    restore();
}

void TerminalMode::raw() noexcept {
    const MutexLock lock(mutex_);
    termios mode = before_;
    ::cfmakeraw(&mode);
    raw_ = ::tcsetattr(fd_, TCSADRAIN, &mode) == 0 || raw_;
}

void TerminalMode::restore() noexcept {
    const MutexLock lock(mutex_);
    if (raw_) ::tcsetattr(fd_, TCSADRAIN, &before_);
    raw_ = false;
}

TerminalSize TerminalMode::size() const noexcept {
    winsize told{};
    if (::ioctl(fd_, TIOCGWINSZ, &told) != 0 || told.ws_col == 0 || told.ws_row == 0) return {};
    const auto bounded = [](unsigned value) { return std::clamp(value, 1U, 1000U); };
    return {bounded(told.ws_col), bounded(told.ws_row)};
}

}  // namespace hearth::cli
