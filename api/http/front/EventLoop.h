#pragma once

#include <thread>
#include <vector>

#include "api/http/Problem.h"
#include "api/http/front/Connection.h"
#include "api/http/front/ConnectionTimers.h"
#include "api/http/front/Exchange.h"
#include "api/http/front/FrontContext.h"
#include "api/http/front/Peer.h"
#include "api/http/front/RequestQueue.h"
#include "api/http/front/ResponseHead.h"
#include "base/Lifeline.h"
#include "base/Mutex.h"

namespace hearth::api {

/// The thread that accepts connections and owns each one that no worker has: it reads heads, keeps
/// idle connections, writes streams and finishes long answers, each with its deadline.
class EventLoop final : public StreamHost {
public:
    /// `listener` must be non-blocking and outlive the loop.
    EventLoop(FrontContext& core, RequestQueue& queue, int listener);

    void start();
    /// A worker has finished with a connection and no longer touches it. Any thread.
    void giveBack(Connection& connection, Connection::Next next);
    void streamDone(std::uint64_t connection) override;
    /// The connection's stream has given up its place (NewsPlaces) and must end. Any thread.
    void endNews(std::uint64_t connection);
    /// Stops accepting and reading; streams and answers under way continue, and suspended requests
    /// are in the queue when this returns. Any thread except the loop's.
    void beginStop();
    /// Must be called after all workers have ended: waits for the streams and ends the thread.
    void join();

private:
    static constexpr std::uint64_t kListenerId = 0;  ///< in epoll events, beside connection ids
    static constexpr std::uint64_t kWakeId = 1;
    using Place = Connection::Place;

    void run();
    void wake();
    int waitTime();
    void takePosted();
    void takeBack(Connection& connection);
    void handle(Connection& connection, std::uint32_t events);
    /// Runs `work` on a connection; an exception costs that connection only.
    template <typename Work>
    void guard(Connection& connection, Work work);

    void acceptAll();
    void admit(Fd fd, Peer peer);
    /// Closes it to make room; false if it is null.
    bool shed(Connection* connection);
    void refuse(Fd fd, const Peer& peer, std::string_view reason);
    void pauseAccepting();

    void park(Connection& connection);
    void readable(Connection& connection);
    /// Dispatches complete requests, refuses bad ones, and arms the right deadline for the rest.
    void advance(Connection& connection);
    void dispatch(Connection& connection);
    void reject(Connection& connection, const HttpProblem& why, std::string_view reason);
    /// The known facts of a request that no worker has answered.
    AccessEntry unanswered(Connection& connection);
    /// True if the access log may get a line for one more client that was refused before its
    /// request. Only some per second are logged, so that nobody fills the disk.
    bool mayTellRefusal();
    /// Writes `output`, within the stall time and the least rate.
    void startFlush(Connection& connection);
    void flush(Connection& connection);
    void suspend(Connection& connection);
    /// Gives it to a worker again.
    void resume(Connection& connection);
    void writeStream(Connection& connection);
    void endStream(Connection& connection, bool clean);
    /// Ends a stream that has given up its place: cleanly if its client reads.
    void giveUp(Connection& connection);
    /// Call before the descriptor is closed or used again: senders must not reach it any more.
    void cutOff(const std::shared_ptr<DetachedStream>& stream);
    void discard(Connection& connection);
    /// Makes the loop look at a stream or wait again when its right is withdrawn.
    void watchRight(Connection& connection);
    /// Ends a stream whose right has ended.
    void endLapsed(Connection& connection);
    void sayGoodbye(Connection& connection);
    void close(Connection& connection);

    void fireTimers();
    void timeout(Connection& connection, TimePoint now);
    void arm(Connection& connection, std::uint32_t events);
    void stopReading();
    void cutAll();

    FrontContext& core_;
    RequestQueue& queue_;
    int listener_;
    Fd epoll_;
    Fd wake_;
    bool accepting_ = true;
    TimePoint accept_again_{TimePoint::max()};
    TimePoint refusals_since_;  ///< start of the second in which refusals are counted
    int refusals_ = 0;
    std::uint64_t next_id_ = 2;  ///< 0 is the listener, 1 the wake-up
    ConnectionTable connections_{core_.options, core_.clock};
    ConnectionTimers timers_;
    IdSource ids_;
    DateText date_;
    bool stopping_ = false;
    bool quitting_ = false;
    TimePoint cut_at_{TimePoint::max()};

    Mutex mutex_;
    std::vector<Connection*> returned_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::uint64_t> done_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::uint64_t> woken_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::uint64_t> to_end_ HEARTH_GUARDED_BY(mutex_);  ///< streams
    std::vector<std::uint64_t> lapsed_ HEARTH_GUARDED_BY(mutex_);  ///< streams and waits
    bool stop_asked_ HEARTH_GUARDED_BY(mutex_) = false;
    bool stop_begun_ HEARTH_GUARDED_BY(mutex_) = false;
    Condition stop_began_;
    bool quit_asked_ HEARTH_GUARDED_BY(mutex_) = false;
    std::jthread thread_;
    /// For the callbacks that wake suspended requests.
    const Lifeline<EventLoop> lifeline_{*this};
};

template <typename Work>
void EventLoop::guard(Connection& connection, Work work) {
    try {
        work();
    } catch (const std::exception& e) {
        core_.log.error("http.connection_failed", {{"peer", connection.peer}, {"error", e.what()}});
        close(connection);
    }
}

}  // namespace hearth::api
