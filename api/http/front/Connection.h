#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "api/http/AccessLog.h"
#include "api/http/Handler.h"
#include "api/http/admission/NewsPlaces.h"
#include "api/http/front/DetachedStream.h"
#include "api/http/front/Front.h"
#include "base/Clock.h"
#include "base/Fd.h"
#include "base/http/RequestHead.h"

namespace hearth::api {

class Exchange;

/// Bytes received and not yet taken.
class Input {
public:
    std::string_view view() const { return std::string_view(bytes_).substr(taken_); }
    std::size_t size() const { return bytes_.size() - taken_; }
    bool empty() const { return size() == 0; }
    void append(std::string_view bytes) {
        if (taken_ > 0) bytes_.erase(0, taken_);
        taken_ = 0;
        bytes_.append(bytes);
    }
    void take(std::size_t count) {
        taken_ += count;
        if (taken_ < bytes_.size()) return;
        taken_ = 0;
        bytes_.clear();
    }

private:
    std::string bytes_;
    std::size_t taken_ = 0;
};

/// One client's connection. The loop owns it; a worker borrows it between dispatch and give-back,
/// and touches it only then, so no field needs a lock.
struct Connection {
    /// Where the connection is. Only the loop writes and reads it.
    enum class Place { Reading, AtWorker, Suspended, Flushing, Streaming, Closing };
    /// The action for a connection that a worker gives back.
    enum class Next {
        Park,     ///< wait for the next request
        Flush,    ///< write `output`, then Park or Close by `keep`
        Stream,   ///< serve `stream`, then Park or Close by `keep`
        Suspend,  ///< give it to a worker again when `suspension` is ready
        Close,    ///< all is sent; the client may still be sending
        Abort,    ///< broken: close at once
    };
    enum class Readiness { Waiting, Ready, Bad };

    Connection();
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// Checks the bytes that have arrived: Ready once a whole head and, if it is small, its body
    /// are there; Bad with `wrong` set if they break a rule.
    Readiness check(const FrontOptions& options, const Clock& clock);
    /// Receives the available bytes once, without blocking.
    enum class Received { Some, Nothing, End };
    Received receive();
    /// The same into another buffer than the input; sets `received` to the number of bytes.
    Received receive(char* out, std::size_t size, std::size_t& received);

    /// Gives up the stream's place.
    void leaveStream() {
        stream_place.reset();
        news_place.reset();
    }

    /// Writes the log line of the request that has ended, if one is due.
    void tellAccess(AccessLog* log, bool whole);
    /// Counts bytes of the answer.
    void sent(std::uint64_t bytes) {
        if (access) access->bytes_out += bytes;
    }

    std::uint64_t id = 0;
    Fd fd;
    std::string peer;
    std::string counted_as;  ///< its address, as in Peer
    bool loopback = false;

    Input input;
    HeadScanner scanner;
    RequestHead head;
    std::size_t head_size = 0;
    bool head_done = false;  ///< `head` is parsed and no worker has taken it yet
    TimePoint head_at{};
    const char* wrong = nullptr;

    Next next = Next::Park;
    bool keep = false;
    bool peer_may_send = false;  ///< closing must wait until the client has seen the answer
    std::string output;
    std::size_t output_at = 0;
    std::unique_ptr<AccessEntry> access;  ///< log line of the answer under way; null: none is due
    std::shared_ptr<void> output_bytes;   ///< counts a long `output` for its tenant
    std::shared_ptr<DetachedStream> stream;
    std::shared_ptr<void> stream_place;  ///< for `stream`, taken before it is made
    NewsPlaces::PlacePtr news_place;     ///< used instead if it waits for news
    std::unique_ptr<Exchange> exchange;  ///< the suspended request
    Suspension suspension;
    std::shared_ptr<void> wait_place;  ///< for `suspension`
    std::shared_ptr<void> wait_bytes;  ///< counts its body, which its resumed request still has
    AccessRight right;                 ///< to `stream` or `suspension`

    Place place = Place::Reading;  ///< the fields from here on belong to the loop
    std::size_t* among = nullptr;  ///< the count for its address; null: it is not counted
    TimePoint accepted_at{};
    TimePoint moved_at{};  ///< when the client last took a part of `output`
    bool served = false;
    bool receiving = false;  ///< a part of a request has arrived
    TimePoint receiving_since{};
    TimePoint flush_until{TimePoint::max()};  ///< also the end of a lingering close
    TimePoint deadline{TimePoint::max()};
    TimePoint timer_at{TimePoint::max()};
    std::shared_ptr<void> subscription;                                     ///< for the suspension
    std::optional<std::stop_callback<std::function<void()>>> on_withdrawn;  ///< for `right`
};

}  // namespace hearth::api
