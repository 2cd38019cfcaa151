#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "api/http/front/Front.h"

namespace hearth::api {

/// The client hung up or reads too slowly. Never sent to a client, as there is none.
class ClientGone : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Blocking writes to a non-blocking socket. Gives up with ClientGone after `write_stall` without
/// progress, or when the client has taken less than `body_rate` over the time spent waiting for it
/// beyond `write_stall`.
class SocketWriter {
public:
    SocketWriter(int fd, const FrontOptions& options, const Clock& clock)
        : fd_(fd), options_(options), clock_(clock) {}

    /// Writes all parts in order, in one system call if the kernel takes them.
    void write(std::string_view first, std::string_view second = {}, std::string_view third = {});
    /// Writes the bytes that the kernel takes at once; returns their number.
    std::size_t tryWrite(std::string_view first, std::string_view second);
    std::uint64_t sent() const { return sent_; }

private:
    std::size_t push(std::string_view first, std::string_view second, std::string_view third);
    void waitWritable();

    int fd_;
    const FrontOptions& options_;
    const Clock& clock_;
    std::uint64_t sent_ = 0;
    std::chrono::nanoseconds waited_{};
};

}  // namespace hearth::api
