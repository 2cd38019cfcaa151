#include "controller/executions/LiveExecutions.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {
namespace {

/// An agent does not report the limit that it was given; most are given this one.
constexpr std::uint64_t kCountedOfAdopted = 1U << 20U;

}  // namespace

bool LiveExecutions::add(const std::shared_ptr<LiveExecution>& execution) {
    const LiveExecution::Facts& facts = execution->facts();
    const MutexLock lock(mutex_);
    if (live_.contains(facts.id)) return false;
    std::shared_ptr<void> counted =
        room(execution->workspace()->facts().tenant, facts.output_limit + facts.stdin_bytes);
    return live_.emplace(facts.id, Entry{execution, std::move(counted)}).second;
}

bool LiveExecutions::adopt(const std::shared_ptr<LiveExecution>& execution) {
    std::shared_ptr<void> counted =
        kept_.takeAnyway(execution->workspace()->facts().tenant, kCountedOfAdopted);
    const MutexLock lock(mutex_);
    return live_.emplace(execution->id(), Entry{execution, std::move(counted)}).second;
}

void LiveExecutions::requireRoom(const std::string& tenant, std::uint64_t bytes) const {
    room(tenant, bytes);
}

std::shared_ptr<void> LiveExecutions::room(const std::string& tenant, std::uint64_t bytes) const {
    if (std::shared_ptr<void> taken = kept_.take(tenant, bytes)) return taken;
    throw Error(ErrorCode::RateLimited,
                "the running executions of tenant " + tenant +
                    " may keep at most 512 MiB of input, output and results together")
        .hint("ask for less with outputLimitBytes, or wait until some have ended")
        .retryAfter(std::chrono::seconds(1));
}

void LiveExecutions::remove(const std::string& id) {
    const MutexLock lock(mutex_);
    live_.erase(id);
}

std::shared_ptr<LiveExecution> LiveExecutions::find(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = live_.find(id);
    return found == live_.end() ? nullptr : found->second.execution;
}

std::vector<std::shared_ptr<LiveExecution>> LiveExecutions::all() const {
    const MutexLock lock(mutex_);
    std::vector<std::shared_ptr<LiveExecution>> all;
    all.reserve(live_.size());
    for (const auto& [id, entry] : live_) all.push_back(entry.execution);
    return all;
}

bool LiveExecutions::anyOf(const std::string& workspace) const {
    const MutexLock lock(mutex_);
    return std::any_of(live_.begin(), live_.end(), [&](const auto& entry) {
        return entry.second.execution->workspace()->facts().id == workspace;
    });
}

}  // namespace hearth::controller
