#pragma once

#include <deque>
#include <mutex>

#include "base/Subscribers.h"
#include "controller/contract/Events.h"
#include "controller/store/Journal.h"

namespace hearth::controller {

/// The last thousand events in memory, and all of them to the journal. Thread-safe.
class EventLog final : public Events {
public:
    EventLog(Journal& journal, const Clock& clock);

    /// Numbers and publishes the event; `id` and `time` are filled in here.
    void publish(Event event);

    std::vector<Event> list(const Principal& who, const EventQuery& query) override;
    std::shared_ptr<void> subscribe(std::function<void()> changed) override;

private:
    Journal& journal_;
    const Clock& clock_;
    std::mutex mutex_;
    std::uint64_t last_id_ = 0;  // guarded by mutex_
    std::deque<Event> recent_;   // guarded by mutex_
    Subscribers subscribers_;
};

}  // namespace hearth::controller
