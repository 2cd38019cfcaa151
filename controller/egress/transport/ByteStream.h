#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "base/Fd.h"

namespace hearth::egress {

/// How long either side of the proxy may take to accept, or to send, a piece.
inline constexpr std::chrono::milliseconds kTakeWithin = std::chrono::seconds(60);

/// The other side has closed, or neither accepted nor sent anything in time.
class StreamBroken : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Bytes both ways over a connection, with a deadline for each call. Not thread-safe.
class ByteStream {
public:
    virtual ~ByteStream() = default;
    /// Reads at least one byte; returns 0 at the end. Throws StreamBroken.
    virtual std::size_t read(char* into, std::size_t room, std::chrono::milliseconds patience) = 0;
    /// Writes all of it. Throws StreamBroken; `patience` applies to each piece that is accepted.
    virtual void write(std::string_view bytes, std::chrono::milliseconds patience) = 0;
};

/// A socket, which it does not own and which must be non-blocking.
class SocketStream final : public ByteStream {
public:
    explicit SocketStream(int fd) : fd_(fd) {}
    std::size_t read(char* into, std::size_t room, std::chrono::milliseconds patience) override;
    void write(std::string_view bytes, std::chrono::milliseconds patience) override;

private:
    int fd_;
};

/// Makes the closing of this TCP connection a reset, so the other side sees a break, not an end.
void resetAtClose(int fd) noexcept;

/// How many bytes went each way.
struct Carried {
    std::uint64_t sent = 0;      ///< from `inside` to `outside`
    std::uint64_t received = 0;  ///< from `outside` to `inside`
};

struct RelayLimits {
    std::uint64_t sent = UINT64_MAX;      ///< after these, nothing more is read from `inside`
    std::uint64_t received = UINT64_MAX;  ///< after these, the relay ends
    /// True to report the end of input to the outside. Some HTTP servers read it as a client
    /// that has gone.
    bool tell_end = true;
    std::chrono::milliseconds idle = std::chrono::minutes(5);
    /// Called with the bytes just carried; false ends the relay. May be empty.
    std::function<bool(const Carried& more)> booked = {};
};

/// Copies bytes between two non-blocking sockets until `outside` has ended and everything was
/// delivered, one of them breaks, or nothing moves for `idle`. `carried` counts the bytes, also
/// when this throws StreamBroken.
void relay(int inside, int outside, const RelayLimits& limits, Carried& carried);

}  // namespace hearth::egress
