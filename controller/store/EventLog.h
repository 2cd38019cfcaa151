#pragma once

#include <deque>

#include "base/Mutex.h"
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
    Mutex mutex_;
    std::uint64_t last_id_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::deque<Event> recent_ HEARTH_GUARDED_BY(mutex_);
    Subscribers subscribers_;
};

}  // namespace hearth::controller
