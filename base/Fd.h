#pragma once

#include <unistd.h>

#include <utility>

namespace hearth {

/// Owns one file descriptor; closes it at the end. Move-only, not thread-safe.
class [[nodiscard]] Fd {
public:
    Fd() noexcept = default;
    explicit Fd(int fd) noexcept : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { reset(); }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /// Gives the descriptor away; the caller closes it.
    int release() noexcept { return std::exchange(fd_, -1); }
    /// Closes now. On Linux the descriptor is gone even when close() reports EINTR.
    void reset() noexcept {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

private:
    int fd_ = -1;
};

}  // namespace hearth
