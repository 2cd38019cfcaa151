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

/// One open stream of a connection: what the client sends on it arrives here. It ends by
/// Connection::reply or fail, which destroy it.
class Stream {
public:
    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    virtual ~Stream() = default;
    virtual void data(std::string_view bytes) = 0;
    virtual void end() = 0;
    virtual void credit(std::uint32_t bytes) = 0;
    /// The stream is over, answered or not, and is destroyed later: nothing may be sent on it now.
    virtual void detach() = 0;
    /// The connection has room again: send what is waiting.
    virtual void pump() = 0;
};

/// The events of a connection for the agent. Calls come on the loop's thread.
class ConnectionOwner {
public:
    /// A Request frame on a new stream; its answer closes the stream.
    virtual void request(Connection& connection, std::uint32_t stream, const JsonValue& body) = 0;
    /// The connection is over: the owner buries it.
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
    /// A frame costs its receiver a wake-up, and the work that it tells of the processor meanwhile.
    static constexpr std::int64_t kHoldNs = 1'000'000;

    /// `line` is given where the socket leads into a network; null on a Unix socket.
    Connection(EventLoop& loop, ConnectionOwner& owner, Fd socket,
               std::unique_ptr<SecureLine> line = nullptr);
    ~Connection() override;

    void ready(std::uint32_t events) override;

    void reply(std::uint32_t stream, const JsonValue& body);
    /// The members of the object `details` are added.
    void fail(std::uint32_t stream, std::string_view code, std::string_view message,
              const JsonValue& details = JsonValue::object());
    void note(std::uint32_t stream, const JsonValue& body);
    /// One that is in no hurry: it goes with the next frame, or alone after kHoldNs.
    void noteSoon(std::uint32_t stream, const JsonValue& body);
    void send(FrameType type, std::uint32_t stream, Channel channel, std::string_view payload);
    /// A frame whose first byte carries the descriptor.
    void sendPassing(FrameType type, std::uint32_t stream, std::string_view payload, Fd fd);
    /// A Data frame of execution output.
    void output(std::uint32_t stream, Channel channel, std::uint64_t offset,
                std::string_view bytes);
    void grant(std::uint32_t stream, std::uint32_t bytes);

    /// Whether descriptors sent on it reach the client: not over a network, nor through a relay,
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
    /// When flush() is to be called for what is held; INT64_MAX if nothing is.
    std::int64_t heldUntilNs() const noexcept { return held_until_ns_; }
    /// Closes once everything queued has been sent.
    void closeAfterFlush() noexcept { closing_ = true; }
    void close();
    bool isOpen() const noexcept { return static_cast<bool>(socket_); }

    /// Whether the peer is the server: on a Unix socket it always is.
    bool proven() const noexcept { return line_ == nullptr || line_->proven(); }
    /// Whether the server opened it for this kind.
    bool meantFor(Kind wanted) const noexcept;

    Kind kind = Kind::New;
    std::string origin;  ///< over TCP, the peer's address; empty for all of the sandbox's own
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
        std::size_t at;  ///< in out_
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
