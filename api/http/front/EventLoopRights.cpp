#include "api/http/front/EventLoop.h"

// Ends an answer under way when the right to it ends: at its expiry, which is one of a connection's
// deadlines, or because it is withdrawn.
namespace hearth::api {

void EventLoop::watchRight(Connection& connection) {
    connection.on_withdrawn.emplace(connection.right.withdrawn,
                                    [line = lifeline_.line(), id = connection.id] {
                                        line.reach([&](EventLoop& loop) {
                                            {
                                                const MutexLock lock(loop.mutex_);
                                                loop.lapsed_.push_back(id);
                                            }
                                            loop.wake();
                                        });
                                    });
}

void EventLoop::endLapsed(Connection& connection) {
    connection.stream->lapse();
    // News end complete. Any other answer is incomplete, and its client must see that.
    if (connection.news_place && connection.stream->pending() == 0) {
        setDeadline(connection, core_.clock.now() + core_.options.write_stall);
        connection.stream->finish();
    } else {
        endStream(connection, false);
    }
}

}  // namespace hearth::api
