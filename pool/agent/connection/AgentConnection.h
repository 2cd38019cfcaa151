#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/agent/connection/Poller.h"
#include "pool/agent/protocol/Frame.h"
#include "pool/agent/transport/AgentLink.h"

namespace hearth::agent {

class AgentConnection;

/// The agent sent something that PROTOCOL.md does not allow.
class ProtocolError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Hears the frames of one stream. `frame` and `lost` come from the thread that reads the
/// connection, one at a time and without locks; `tick` from the Poller's.
class Stream {
public:
    virtual ~Stream() = default;
    /// True when the frame closed the stream. A ProtocolError ends the connection.
    virtual bool frame(AgentConnection& from, const FrameHeader& header,
                       std::string_view payload) = 0;
    /// The connection ended before the stream did. The last call.
    virtual void lost() {}
    /// True if frames must be read although nobody waits for them.
    virtual bool listens() const { return false; }
    /// Called after AgentConnection::wantTick(), only on streams that listen.
    virtual void tick(AgentConnection&, std::uint32_t /*stream*/) {}
};

/// The Reply or Error of a simple call.
struct Answer {
    bool error = false;
    std::string payload;
};

/// One connection to an agent, multiplexed. One of the waiting threads reads for all (the leader);
/// when its own answer has come, the next one takes over; while nobody waits, the Poller reads. No
/// lock is held while a stream hears a frame. Thread-safe.
class AgentConnection final : public Polled, public std::enable_shared_from_this<AgentConnection> {
public:
    enum class End {
        Closed,     ///< the agent or its machine ended it
        Violation,  ///< the agent broke the protocol
        Late,       ///< the agent did not answer in time
        Ours,       ///< closed by this side
    };
    /// Called once when the connection ends other than by close(), after the streams have heard it.
    using OnEnd = std::function<void(End, const std::string& reason)>;
    using Deadline = Steady::time_point;

    static std::shared_ptr<AgentConnection> start(Poller& poller, AgentLink link, OnEnd on_end);
    ~AgentConnection() override;
    AgentConnection(const AgentConnection&) = delete;
    AgentConnection& operator=(const AgentConnection&) = delete;

    /// Sends a request and waits for its answer. AgentLost if none comes in time: the connection
    /// continues, and a late answer is dropped.
    Answer call(std::string_view request, Deadline deadline);
    /// Opens a stream with a request and returns its number. Throws AgentLost if the connection has
    /// ended; if it ends afterwards, even before the request is out, the stream hears `lost`.
    std::uint32_t open(const std::shared_ptr<Stream>& stream, std::string_view request,
                       Deadline deadline);
    /// Sends one frame; throws AgentLost. A socket that takes nothing until the deadline is closed,
    /// since a frame may have been written in part.
    void send(const FrameHeader& header, std::string_view payload, Deadline deadline);
    /// Queues a small frame and never blocks; for the reading thread.
    void post(FrameType type, std::uint32_t stream, std::string_view payload);
    void postCredit(std::uint32_t stream, std::size_t bytes);
    /// As post(), but only while nothing else waits to be written: otherwise returns false and
    /// queues nothing. So a frame may be larger, and is offered again after wantTick().
    bool offer(FrameType type, std::uint32_t stream, std::string_view payload);
    /// Reads, or lets another thread read, until `ready` is true (called without locks; after
    /// frames of `stream`, or after any frame if null). Returns false at the deadline; throws
    /// AgentLost if the connection ended and it is not ready.
    bool await(const Stream* stream, const std::function<bool()>& ready, Deadline deadline);

    /// Ends the connection; the streams hear `lost` from the thread that reads, or from this one.
    void kill(End end, const std::string& reason);
    /// Ends it silently; then waits until nothing is called any more (unless this thread reads).
    void close();
    bool dead() const noexcept { return dead_.load(std::memory_order_acquire); }
    std::string reason() const;
    /// Returns how it ended; call it only once it is dead.
    End end() const;
    /// True if the peer has hung up or sent something unasked for; for an idle connection.
    bool stale() const noexcept;
    /// Ends the connection at that time unless called again; nullopt: never.
    void expireAt(std::optional<Steady::time_point> at);
    /// Requests Stream::tick() and a retry of queued frames, at the latest at `at`.
    void wantTick(Steady::time_point at);
    /// Returns how many of these bytes beyond its limit a paced execution may send now.
    std::size_t allowPaced(std::size_t wanted);

    /// Returns the descriptor that came with the current frame, if any; for Stream::frame().
    Fd takePassed();

    /// For the Poller.
    void ready() override;
    void due(Steady::time_point now) override;

private:
    struct Waiter {
        const Stream* stream;
        Condition wakeup;
        bool woken = false;
    };

    AgentConnection(Poller& poller, AgentLink link, OnEnd on_end);

    void takeRole() HEARTH_REQUIRES(mutex_);
    void leaveRole() HEARTH_REQUIRES(mutex_);
    void handOver() HEARTH_REQUIRES(mutex_);
    void wake(const Stream* stream) HEARTH_REQUIRES(mutex_);
    void wakeAll() HEARTH_REQUIRES(mutex_);
    void bury() HEARTH_REQUIRES(mutex_);
    void arm() HEARTH_REQUIRES(mutex_);
    void wantTickLocked(Steady::time_point at) HEARTH_REQUIRES(mutex_);
    [[noreturn]] void throwLost() const HEARTH_REQUIRES(mutex_);

    bool pollFor(short events, Deadline deadline) const;
    bool waitReadable(Deadline deadline, bool answer_is_near) const;
    bool readOnce();
    bool readSealed();
    bool heardSince(Steady::time_point at) const noexcept;
    ssize_t receive(char* into, std::size_t room);
    std::size_t consume(const char* bytes, std::size_t size);
    void dispatch(const FrameHeader& header, std::string_view payload);

    bool takePen(Deadline deadline) HEARTH_REQUIRES(mutex_);
    void transmit(const FrameHeader& header, std::string_view payload, Deadline deadline)
        HEARTH_REQUIRES(mutex_);
    ssize_t transmitSome(const iovec* parts, std::size_t count);
    bool unsent() const HEARTH_REQUIRES(mutex_);
    bool enqueue(FrameType type, std::uint32_t stream, std::string_view payload, bool alone);
    void flushPosted() HEARTH_REQUIRES(mutex_);

    Poller& poller_;
    Fd fd_;
    /// Null on a Unix socket. The reader owns its receiving half, the holder of the pen the other.
    const std::unique_ptr<SealedWire> sealed_;
    std::uint64_t poll_id_ = 0;
    OnEnd on_end_;
    std::atomic<bool> dead_{false};  // written under mutex_
    std::atomic<Steady::time_point> heard_{Steady::time_point::min()};

    // Owned by the holder of the reader role: an incomplete frame.
    std::vector<char> buffer_;
    std::size_t filled_ = 0;
    std::string opened_;     ///< the same if sealed_ is set: opened bytes
    std::deque<Fd> passed_;  ///< in the order of the frames that carry them

    mutable Mutex mutex_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Stream>> streams_ HEARTH_GUARDED_BY(mutex_);
    std::vector<Waiter*> waiters_ HEARTH_GUARDED_BY(mutex_);
    std::uint32_t next_stream_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::size_t listening_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool reading_ HEARTH_GUARDED_BY(mutex_) = false;
    std::thread::id reader_ HEARTH_GUARDED_BY(mutex_);
    bool armed_ HEARTH_GUARDED_BY(mutex_) = false;
    bool writing_ HEARTH_GUARDED_BY(mutex_) = false;
    Condition pen_free_;
    std::string posted_ HEARTH_GUARDED_BY(mutex_);
    std::optional<Steady::time_point> tick_at_ HEARTH_GUARDED_BY(mutex_);
    std::optional<Steady::time_point> expire_at_ HEARTH_GUARDED_BY(mutex_);
    End end_ HEARTH_GUARDED_BY(mutex_) = End::Closed;
    std::string reason_ HEARTH_GUARDED_BY(mutex_);
    bool closing_ HEARTH_GUARDED_BY(mutex_) = false;
    bool told_ HEARTH_GUARDED_BY(mutex_) = false;    // the streams have heard of the end
    bool buried_ HEARTH_GUARDED_BY(mutex_) = false;  // and on_end_ has been called
    Condition buried_cv_;
};

/// Returns what kind of loss the end of its connection means for an agent.
Loss lossOf(AgentConnection::End end) noexcept;

}  // namespace hearth::agent
