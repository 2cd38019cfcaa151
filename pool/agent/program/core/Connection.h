#pragma once

#include <sys/types.h>

#include <climits>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/core/SecureLine.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

class Connection;

/// One open stream of a connection; it receives what the client sends. Connection::reply or fail
/// end and destroy it.
class Stream {
public:
    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;
    virtual void data(std::string_view bytes) = 0;
    virtual void end() = 0;
    virtual void credit(std::uint32_t bytes) = 0;
    /// The stream has ended, answered or not; it is destroyed later, and must send nothing now.
    virtual void detach() = 0;
    /// The connection has room again: send what is waiting.
    virtual void pump() = 0;
};

/// The events of a connection for the agent. Calls come on the loop's thread.
class ConnectionOwner {
public:
    /// A Request frame on a new stream; its answer closes the stream.
    virtual void request(Connection& connection, std::uint32_t stream, const JsonValue& body) = 0;
    /// The connection has ended: the owner buries it.
    virtual void closed(Connection& connection) = 0;

protected:
    ~ConnectionOwner() = default;
};

/// One server connection: frames in, frames out, and its streams. Its memory is bounded: while more
/// than kMaxQueued bytes wait for a client that does not read, nothing more is read from it, and
/// streams produce only below kHighWater.
class Connection final : public Source {
public:
    enum class Kind : std::uint8_t { New, Control, Data };
    static constexpr std::size_t kHighWater = 524'288;
    static constexpr std::size_t kMaxQueued = 1'048'576;
    static constexpr std::size_t kMaxStreams = 64;
    /// The delay of noteSoon(): a frame wakes its receiver, which then competes with the work.
    static constexpr std::int64_t kHoldNs = 1'000'000;

    /// `line` is given if the socket leads into a network; null on a Unix socket.
    Connection(EventLoop& loop, ConnectionOwner& owner, Fd socket,
               std::unique_ptr<SecureLine> line = nullptr);
    ~Connection() override;

    void ready(std::uint32_t events) override;

    void reply(std::uint32_t stream, const JsonValue& body);
    /// Adds the members of the object `details`.
    void fail(std::uint32_t stream, std::string_view code, std::string_view message,
              const JsonValue& details = JsonValue::object());
    void note(std::uint32_t stream, const JsonValue& body);
    /// Sends a note that is in no hurry: it goes with the next frame, or alone after kHoldNs.
    void noteSoon(std::uint32_t stream, const JsonValue& body);
    void send(FrameType type, std::uint32_t stream, Channel channel, std::string_view payload);
    /// Sends a frame whose first byte carries the descriptor.
    void sendPassing(FrameType type, std::uint32_t stream, std::string_view payload, Fd fd);
    /// Sends a Data frame of execution output.
    void output(std::uint32_t stream, Channel channel, std::uint64_t offset,
                std::string_view bytes);
    void grant(std::uint32_t stream, std::uint32_t bytes);

    /// True if descriptors sent on it reach the client: not over a network, nor through a relay,
    /// which is a process of this sandbox.
    bool passes() const;

    /// True while streams may produce.
    bool roomy() const noexcept { return queued() < kHighWater; }
    void open(std::uint32_t id, std::unique_ptr<Stream> stream);
    std::size_t streams() const noexcept { return streams_.size(); }
    /// Ends one stream without an answer of its own, as reply and fail do.
    void finish(std::uint32_t id);

    /// Sends queued frames as far as the socket takes them, but not held ones.
    void flush();
    /// Returns when to call flush() for held frames; INT64_MAX if nothing is held.
    std::int64_t heldUntilNs() const noexcept { return held_until_ns_; }
    /// Closes once everything queued has been sent.
    void closeAfterFlush() noexcept { closing_ = true; }
    void close();
    bool isOpen() const noexcept { return static_cast<bool>(socket_); }

    /// True if the peer is proven to be the server: on a Unix socket it always is.
    bool proven() const noexcept { return line_ == nullptr || line_->proven(); }
    /// True if the server opened it for this kind.
    bool meantFor(Kind wanted) const noexcept;

    Kind kind = Kind::New;
    std::string origin;  ///< over TCP, the peer's address; empty for the sandbox's own addresses
    std::int64_t opened_ns = 0;

private:
    std::size_t unsealed() const noexcept { return out_.size() - sent_; }
    std::size_t queued() const noexcept {
        return unsealed() + (line_ != nullptr ? line_->queued() : 0);
    }
    bool take(std::string_view bytes);
    void receive();
    void parse();
    bool frame(const FrameHeader& header, std::string_view payload);
    void watch();
    ssize_t sendSome();
    ssize_t sendSealed();

    EventLoop& loop_;
    ConnectionOwner& owner_;
    Fd socket_;
    std::unique_ptr<SecureLine> line_;
    std::uint32_t watched_ = 0;
    std::string in_;
    std::string out_;
    std::size_t sent_ = 0;
    struct Passing {
        std::size_t at;  ///< its offset in out_
        Fd fd;
    };
    std::deque<Passing> passing_;
    std::uint32_t last_stream_ = 0;
    std::int64_t held_until_ns_ = INT64_MAX;
    bool closing_ = false;
    bool flushing_ = false;
    std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
};

}  // namespace hearth::agent
