#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "api/http/Connection.h"

namespace hearth::api {

/// Reads one request's body from its connection, blocking with a deadline. A client has
/// `body_time` plus a second for each `body_rate` bytes; only time spent waiting for it counts.
class BodyReader {
public:
    BodyReader(Connection& connection, const FrontOptions& options, const Clock& clock);

    /// Up to `size` bytes; 0 at the end. Throws Error(Deadline) when the client is too slow,
    /// Error(InvalidArgument) when the coding is broken or the body is cut off.
    std::size_t read(char* out, std::size_t size);
    bool finished() const { return state_ == State::End; }
    /// The connection cannot serve another request.
    bool broken() const { return broken_; }
    /// The client waits for "100 Continue" and has not been told to go on.
    bool awaited() const { return expect_; }
    /// Bytes still to come, as far as is known.
    std::uint64_t remaining() const { return left_; }
    /// Reads and forgets up to `limit` bytes within `wait`; true if that was all of it.
    bool drain(std::size_t limit, std::chrono::nanoseconds wait);

private:
    enum class State { Data, ChunkSize, ChunkEnd, Trailers, End };

    void chunkSize();
    void trailers();
    /// The next line without its CRLF, taken from the input.
    std::string line(std::size_t limit);
    /// Blocks until there is more input.
    void fill();
    /// Blocks until `receive` has received something.
    template <typename Receive>
    void fillBy(Receive receive);
    void await();
    void waitReadable();
    [[noreturn]] void fail(const char* what);

    Connection& connection_;
    const FrontOptions& options_;
    const Clock& clock_;
    State state_ = State::Data;
    std::uint64_t left_ = 0;  ///< of the body or of the chunk
    std::uint64_t received_ = 0;
    std::chrono::nanoseconds waited_{};
    std::chrono::nanoseconds allowance_;
    bool expect_ = false;
    bool broken_ = false;
};

}  // namespace hearth::api
