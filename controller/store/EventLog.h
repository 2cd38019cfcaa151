#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "controller/contract/Events.h"
#include "controller/journal/Journal.h"

namespace hearth::controller {

/// A thousand events in memory, and all events in the journal. Beyond the limit, the oldest event
/// of the tenant that has most is removed, so no tenant displaces another's. Thread-safe.
class EventLog final : public Events {
public:
    EventLog(Journal& journal, const Clock& clock);

    /// Numbers and publishes the event; sets its `id` and `time`.
    void publish(Event event);

    std::vector<Event> list(const Principal& who, const EventQuery& query) override;
    std::shared_ptr<void> subscribe(std::function<void()> changed) override;

private:
    void keep(Event event) HEARTH_REQUIRES(mutex_);

    Journal& journal_;
    const Clock& clock_;
    Mutex mutex_;
    std::uint64_t last_id_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::deque<Event> recent_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::size_t> counts_ HEARTH_GUARDED_BY(mutex_);  ///< by tenant
    Subscribers subscribers_;
};

}  // namespace hearth::controller
