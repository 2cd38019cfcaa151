#include "api/mcp/stdio/SessionStream.h"

#include <utility>

#include "base/Error.h"

namespace hearth::mcp {

SessionStream::SessionStream(Upstream& upstream, Upstream::Deliver deliver)
    : upstream_(upstream),
      deliver_(std::move(deliver)),
      client_(upstream.connect()),
      thread_([this](const std::stop_token& stop) { loop(stop); }) {}

SessionStream::~SessionStream() {
    thread_.request_stop();
    client_.interrupt();
    // interrupt() misses a connection that is being made; listen() leaves that one by its stop.
}

void SessionStream::loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        try {
            if (!upstream_.listen(client_, stop, deliver_)) return;
        } catch (const Error&) {  // the server restarts, or is gone: calls report that
            client_.close();
        }
        const MutexLock lock(mutex_);
        pause_.waitFor(mutex_, stop, kRetry, [] { return false; });
    }
}

}  // namespace hearth::mcp
