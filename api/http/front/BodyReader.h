#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "api/http/front/Connection.h"

namespace hearth::api {

/// Reads one request's body from its connection, blocking with a deadline. A client has `body_time`
/// plus a second for each `body_rate` bytes; only the time spent waiting for it counts.
class BodyReader {
public:
    BodyReader(Connection& connection, const FrontOptions& options, const Clock& clock);

    /// Reads up to `size` bytes; 0 at the end. Throws Error(Deadline) if the client is too slow,
    /// Error(InvalidArgument) if the coding is broken or the body is cut off.
    std::size_t read(char* out, std::size_t size);
    bool finished() const { return state_ == State::End; }
    /// True if the connection cannot serve another request.
    bool broken() const { return broken_; }
    /// The number of body bytes that were read.
    std::uint64_t received() const { return received_; }
    /// Reads and drops the bytes that have arrived, up to `limit`; true if they were the rest of
    /// the body. It never waits: an answer that needs no rights must cost no worker's time.
    bool discardArrived(std::size_t limit);
    /// Answers "100 Continue" to a client that waits for it.
    void goOn();

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
    void waitReadable();
    [[noreturn]] void fail(const char* what);

    Connection& connection_;
    const FrontOptions& options_;
    const Clock& clock_;
    State state_ = State::Data;
    std::uint64_t left_ = 0;  ///< in the body or in the chunk
    std::uint64_t received_ = 0;
    std::chrono::nanoseconds waited_{};
    std::chrono::nanoseconds allowance_;
    bool expect_ = false;
    bool broken_ = false;
    bool may_wait_ = true;
};

}  // namespace hearth::api
