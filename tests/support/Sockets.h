#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/Fd.h"

/// Bytes over the sockets of tests, blocking or not. Each wait is limited.
namespace hearth::test {

inline constexpr int kSocketPatienceMs = 20'000;

/// Returns `size` bytes; each differs from its neighbours.
inline std::string bytesOf(std::size_t size) {
    std::string text(size, '\0');
    std::uint32_t value = 7;
    for (char& c : text) c = static_cast<char>((value = value * 1'664'525 + 1'013'904'223) >> 24U);
    return text;
}

/// Reads up to `most` bytes; fewer at the other side's end. Throws if neither comes.
inline std::string readFrom(const Fd& fd, std::size_t most) {
    std::string all;
    std::array<char, 65'536> piece;
    while (all.size() < most) {
        pollfd wait{fd.get(), POLLIN, 0};
        if (::poll(&wait, 1, kSocketPatienceMs) <= 0) {
            throw std::runtime_error("nothing comes, and no end");
        }
        const ssize_t n =
            ::recv(fd.get(), piece.data(), std::min(piece.size(), most - all.size()), 0);
        if (n <= 0) break;
        all.append(piece.data(), static_cast<std::size_t>(n));
    }
    return all;
}

/// Writes all bytes. Throws if the other side has gone, or takes nothing.
inline void writeTo(const Fd& fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
            continue;
        }
        if (n < 0 && errno != EAGAIN) throw std::runtime_error("the other side has gone");
        pollfd wait{fd.get(), POLLOUT, 0};
        if (::poll(&wait, 1, kSocketPatienceMs) <= 0) throw std::runtime_error("nothing is taken");
    }
}

/// Writes pieces until none has been taken for a moment. Returns the number of bytes.
inline std::size_t fillUp(const Fd& fd, std::string_view piece) {
    constexpr int kMomentMs = 300;
    std::size_t sent = 0;
    for (;;) {
        const ssize_t n = ::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
            continue;
        }
        pollfd wait{fd.get(), POLLOUT, 0};
        if (::poll(&wait, 1, kMomentMs) <= 0) return sent;
    }
}

}  // namespace hearth::test
