#include "controller/store/EventLog.h"

#include <algorithm>

#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kRecent = 1000;

bool visible(const Principal& who, const Event& event) {
    return who.atLeast(Role::Operator) || (!event.tenant.empty() && event.tenant == who.tenant);
}

}  // namespace

EventLog::EventLog(Journal& journal, const Clock& clock) : journal_(journal), clock_(clock) {
    std::vector<Event> stored;
    journal_.read([&](Database& database) {
        // Read per tenant, because another tenant's events may all be newer.
        Statement row(database,
                      "SELECT id, time_ms, type, resource, pool, tenant, reason, message, trace "
                      "FROM (SELECT *, row_number() OVER (PARTITION BY tenant ORDER BY id DESC) "
                      "AS nth FROM events) WHERE nth <= ? ORDER BY id DESC");
        row.bind(static_cast<std::int64_t>(kRecent));
        while (row.step()) {
            stored.push_back({static_cast<std::uint64_t>(row.integer(0)),
                              formatUnixMillis(row.integer(1)), row.text(2), row.text(3),
                              row.text(4), row.text(5), row.text(6), row.text(7), row.text(8)});
        }
    });
    const MutexLock lock(mutex_);
    // Also uses the wall clock: published ids may never have reached a full disk.
    last_id_ = std::max(stored.empty() ? 0 : stored.front().id,
                        static_cast<std::uint64_t>(toUnixMillis(clock_.wall())) * 1000);
    for (; !stored.empty(); stored.pop_back()) keep(std::move(stored.back()));
}

void EventLog::publish(Event event) {
    const WallTime now = clock_.wall();
    event.time = formatRfc3339(now);
    {
        const MutexLock lock(mutex_);
        event.id = ++last_id_;
        keep(event);
    }
    journal_.record(event, toUnixMillis(now));
    subscribers_.notify();
}

void EventLog::keep(Event event) {
    ++counts_[event.tenant];
    recent_.push_back(std::move(event));
    if (recent_.size() <= kRecent) return;
    const auto most =
        std::max_element(counts_.begin(), counts_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    recent_.erase(std::find_if(recent_.begin(), recent_.end(),
                               [&](const Event& each) { return each.tenant == most->first; }));
    if (--most->second == 0) counts_.erase(most);
}

std::vector<Event> EventLog::list(const Principal& who, const EventQuery& query) {
    std::vector<Event> found;
    const MutexLock lock(mutex_);
    for (const Event& event : recent_) {
        if (event.id <= query.since || !visible(who, event)) continue;
        if (!query.type.empty() && event.type != query.type) continue;
        if (!query.resource.empty() && event.resource != query.resource) continue;
        found.push_back(event);
        if (found.size() >= query.limit) break;
    }
    return found;
}

std::shared_ptr<void> EventLog::subscribe(std::function<void()> changed) {
    return subscribers_.add(std::move(changed));
}

}  // namespace hearth::controller
