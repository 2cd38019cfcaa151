#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/mcp/http/MessageSink.h"
#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::mcp {

class ReplayLog;

/// SSE answers that survive their connection (Streamable HTTP of 2025-03-26 to 2025-11-25): each
/// event has an id, and a GET with the last id in Last-Event-ID returns the later events and
/// continues. Kept in memory, bounded in all and per tenant; a restart forgets them. Thread-safe.
class ReplayStreams {
public:
    explicit ReplayStreams(const Clock& clock) : clock_(clock) {}

    /// Opens an answer of a tenant's session on `stream`. With `prime`, it begins with an event
    /// that has an id and no data, so that even the first message can be fetched again.
    std::shared_ptr<MessageSink> open(const std::string& tenant, const std::string& session,
                                      std::shared_ptr<api::Stream> stream, bool prime);
    /// True if resume() would find the answer of this event.
    bool knows(const std::string& session, std::string_view last_event_id);
    /// Sends the events after that one on `stream` and moves the answer there.
    void resume(const std::string& session, std::string_view last_event_id,
                std::shared_ptr<api::Stream> stream);

    /// The most answers of one tenant, and the most bytes of them.
    static constexpr std::size_t kMaxLogs = 500;
    static constexpr std::size_t kMaxBytes = 16U << 20U;
    static constexpr std::size_t kMaxBytesOfAll = 128U << 20U;
    static constexpr std::chrono::minutes kKept{5};

private:
    struct Place {
        std::shared_ptr<ReplayLog> log;
        std::uint64_t event = 0;
    };
    Place find(const std::string& session, std::string_view last_event_id);
    void collect(const std::string& tenant) HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    Mutex mutex_;
    std::map<std::string, std::shared_ptr<ReplayLog>, std::less<>> logs_ HEARTH_GUARDED_BY(mutex_);
    std::deque<std::string> order_ HEARTH_GUARDED_BY(mutex_);  ///< logs_'s ids, oldest first
};

}  // namespace hearth::mcp
