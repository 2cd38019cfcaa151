#include "controller/reconcile/PoolStatuses.h"

#include <algorithm>

#include "controller/reconcile/Warmup.h"

namespace hearth::controller {

namespace {

constexpr const char* kUnpackingImage = "UnpackingImage";

std::optional<PoolScheduleStatus> scheduleStatus(const PoolSpec& spec, WallTime now) {
    if (spec.schedules.empty()) return std::nullopt;
    const auto name_of = [&spec](std::optional<std::size_t> entry) {
        return entry ? spec.schedules[*entry].name : std::string();
    };
    const InForce current = inForce(spec.schedules, now);
    const WarmRange range = warmRange(spec.schedules, ownRange(spec), now);
    PoolScheduleStatus status{name_of(current.entry), range.min, range.max, {}, {}, {}};
    if (current.since > WallTime::min()) status.since = formatRfc3339(current.since);
    if (const std::optional<WallTime> next = nextChange(spec.schedules, now)) {
        status.next_change = formatRfc3339(*next);
        status.next_entry = name_of(inForce(spec.schedules, *next).entry);
    }
    return status;
}

}  // namespace

PoolStatuses::PoolStatuses(const Supply& supply, const WorkspaceTable& table, Layers& layers,
                           const PoolDependencies& outside, const pool::SandboxRuntime& runtime,
                           const History& history)
    : supply_(supply),
      table_(table),
      layers_(layers),
      outside_(outside),
      runtime_(runtime),
      history_(history) {}

void PoolStatuses::publish(const Pool& pool, const Sized& sized, bool refill) {
    const std::size_t desired = sized.desired;
    const Outlook& outlook = sized.outlook;
    const pool::PoolCounts counts = supply_.warm.counts(pool.name);
    const CircuitBreaker::State breaker = supply_.breaker.state(pool.name);
    PoolStatus next = of(pool.name);
    next.observed_generation = pool.generation;
    next.desired = static_cast<std::uint32_t>(desired);
    next.forecast = {outlook.per_second, outlook.lead_seconds, outlook.missed,
                     static_cast<std::uint32_t>(outlook.target)};
    const bool was_degraded = std::any_of(
        next.conditions.begin(), next.conditions.end(),
        [](const PoolCondition& c) { return c.type == ConditionType::Degraded && c.status; });
    publishReady(counts.ready, desired, refill, next);
    publishProgress(pool, breaker, next);
    publishLimit(pool, counts, next);
    const std::string trouble = runtime_.trouble();
    const bool refused = !pool.refused.empty();
    const bool degraded = refused || !trouble.empty() || breaker.degraded();
    const char* reason = refused              ? "SpecRefused"
                         : !trouble.empty()   ? "RuntimeStuck"
                         : breaker.no_layer   ? "PackagesFailed"
                         : breaker.diskFull() ? "DiskFull"
                         : degraded           ? "CreateFailed"
                                              : "Healthy";
    const std::string& why = refused ? pool.refused : !trouble.empty() ? trouble : breaker.reason;
    setCondition(next, history_.clock, ConditionType::Degraded, degraded, reason,
                 degraded ? why : "");
    publishPrewarm(pool, breaker, next);
    publishGpus(pool, breaker, next);
    publishSchedule(pool, next);
    const PoolStatus before = next;
    outside_.tell(pool.spec, next);
    outside_.logNews(pool.name, before, next);
    if (pool.spec.network == egress::NetworkMode::Mirror) {
        history_.metrics.bornMirror(pool.name);
    }
    if (degraded != was_degraded) {
        history_.events.publish({.type = degraded ? "pool.degraded" : "pool.recovered",
                                 .resource = pool.name,
                                 .pool = pool.name,
                                 .reason = reason,
                                 .message = why});
    }

    history_.metrics.poolDegraded(pool.name, degraded);
    history_.metrics.poolDesired(pool.name, static_cast<double>(desired));
    history_.metrics.poolForecast(pool.name, outlook.per_second,
                                  static_cast<double>(outlook.target), outlook.missed);
    history_.metrics.poolSandboxes(pool.name, "creating", static_cast<double>(counts.creating));
    history_.metrics.poolSandboxes(pool.name, "warming", static_cast<double>(counts.warming));
    history_.metrics.poolSandboxes(pool.name, "ready", static_cast<double>(counts.ready));
    history_.metrics.poolSandboxes(pool.name, "claimed", static_cast<double>(counts.claimed));
    history_.metrics.poolSandboxes(pool.name, "draining", static_cast<double>(counts.draining));
    history_.metrics.poolSandboxes(pool.name, "failed", static_cast<double>(counts.failed));
    history_.metrics.workspaces(pool.name, static_cast<double>(table_.countOf(pool.name)));
    const MutexLock lock(mutex_);
    status_[pool.name] = std::move(next);
}

void PoolStatuses::publishReady(std::size_t ready, std::size_t desired, bool refill,
                                PoolStatus& status) {
    if (!refill) {
        return setCondition(status, history_.clock, ConditionType::Ready, false, "Drained",
                            "it stays empty until the server is undrained or started again");
    }
    setCondition(status, history_.clock, ConditionType::Ready, ready >= desired,
                 ready >= desired ? "Filled" : "Filling",
                 std::to_string(ready) + " of " + std::to_string(desired) + " warm");
}

void PoolStatuses::publishProgress(const Pool& pool, const CircuitBreaker::State& breaker,
                                   PoolStatus& status) {
    const bool creating = status.creating > 0;
    if (!creating) supply_.breaker.unpacking(pool.name, "");  // the waiting creates were retired
    // Creates that wait for an image that the pool no longer has are replaced soon.
    const bool unpacking = creating && breaker.unpacking == pool.spec.image;
    std::string message = std::to_string(status.creating) + " being created";
    if (unpacking) message += ", after image " + breaker.unpacking + " has been unpacked";
    const auto unpacked_before = [](const PoolCondition& c) {
        return c.type == ConditionType::Progressing && c.reason == kUnpackingImage;
    };
    const bool before =
        std::any_of(status.conditions.begin(), status.conditions.end(), unpacked_before);
    // Failed attempts are no events: the pool is then Degraded and gives the reason.
    if (unpacking != before && breaker.failures == 0) {
        history_.log.info(unpacking ? "pool.image_unpacking" : "pool.image_unpacked",
                          {{"pool", pool.name}, {"image", pool.spec.image}});
        history_.events.publish(
            {.type = unpacking ? "pool.image_unpacking" : "pool.image_unpacked",
             .resource = pool.name,
             .pool = pool.name,
             .reason = {},
             .message = unpacking ? "image " + pool.spec.image + " is being unpacked first"
                                  : "sandboxes no longer wait for image " + pool.spec.image});
    }
    setCondition(status, history_.clock, ConditionType::Progressing, creating,
                 unpacking  ? kUnpackingImage
                 : creating ? "Creating"
                            : "Settled",
                 std::move(message));
}

void PoolStatuses::publishLimit(const Pool& pool, const pool::PoolCounts& counts,
                                PoolStatus& status) {
    // Pools of claims that name an image share one limit, so none of them reaches its own.
    const std::size_t wanted = std::size_t{status.desired} + status.waiting;
    const bool wants_more = counts.ready + status.creating < wanted;
    const bool limited = pool.on_demand.empty() && wants_more &&
                         counts.total() - counts.draining >= pool.spec.max_members;
    setCondition(status, history_.clock, ConditionType::ScalingLimited, limited,
                 limited ? "MembersLimit" : "WithinLimits",
                 limited ? "it has as many sandboxes as limits.members allows (" +
                               std::to_string(pool.spec.max_members) + "), " +
                               std::to_string(counts.claimed) +
                               " of them claimed; claims in line: " + std::to_string(status.waiting)
                         : "");
}

void PoolStatuses::publishSchedule(const Pool& pool, PoolStatus& status) {
    const std::optional<PoolScheduleStatus> before = std::move(status.schedule);
    status.schedule = scheduleStatus(pool.spec, history_.clock.wall());
    // The entry in force before a start is unknown: only a change seen here is an event.
    if (!before || !status.schedule || before->entry == status.schedule->entry) return;
    const PoolScheduleStatus& now = *status.schedule;
    const bool began = !now.entry.empty();
    const std::string range =
        std::to_string(now.min) + " to " + std::to_string(now.max) + " warm sandboxes";
    history_.events.publish(
        {.type = began ? "pool.schedule_began" : "pool.schedule_ended",
         .resource = pool.name,
         .pool = pool.name,
         .reason = began ? now.entry : before->entry,
         .message = began ? "the schedule " + now.entry + " sets " + range
                          : "the schedule " + before->entry + " has ended: " + range});
    history_.log.info(
        "pool.schedule",
        {{"pool", pool.name}, {"schedule", now.entry}, {"min", now.min}, {"max", now.max}});
}

void PoolStatuses::publishPrewarm(const Pool& pool, const CircuitBreaker::State& breaker,
                                  PoolStatus& status) {
    const bool packages = !pool.spec.prewarm_packages.empty() && pool.refused.empty();
    Layers::View layer = packages ? layers_.want(pool.spec) : Layers::View{};
    status.packages.reset();
    if (layer.state == Layers::State::Ready) {
        status.packages = {layer.digest, layer.lock, std::move(layer.packages)};
    }
    if (layer.state == Layers::State::Making) {
        setCondition(status, history_.clock, ConditionType::Prewarmed, false, "InstallingPackages",
                     "its packages are being installed; no sandbox is made before that");
    } else if (layer.state == Layers::State::Failed) {
        setCondition(status, history_.clock, ConditionType::Prewarmed, false, "PackagesFailed",
                     layer.why);
    } else if (!layer.why.empty()) {
        setCondition(status, history_.clock, ConditionType::Prewarmed, true, "Complete",
                     "its packages could not be resolved again: " + layer.why);
    } else if (Warmup::wanted(pool.spec) && breaker.prewarm) {
        const bool whole = breaker.prewarm->empty();
        setCondition(status, history_.clock, ConditionType::Prewarmed, whole,
                     whole ? "Complete" : "Incomplete", whole ? "" : *breaker.prewarm);
    } else if (packages && !Warmup::wanted(pool.spec)) {
        setCondition(status, history_.clock, ConditionType::Prewarmed, true, "Complete", "");
    } else if (packages || !Warmup::wanted(pool.spec)) {  // nothing to report yet, or ever
        std::erase_if(status.conditions,
                      [](const PoolCondition& c) { return c.type == ConditionType::Prewarmed; });
    }
}

void PoolStatuses::publishGpus(const Pool& pool, const CircuitBreaker::State& breaker,
                               PoolStatus& status) {
    if (pool.spec.gpu.count == 0) {
        std::erase_if(status.conditions, [](const PoolCondition& c) {
            return c.type == ConditionType::GpusAvailable;
        });
        return;
    }
    const std::string& lack = breaker.no_gpus;
    setCondition(status, history_.clock, ConditionType::GpusAvailable, lack.empty(),
                 lack.empty() ? "Available" : "TooFewFree", lack);
}

PoolStatus PoolStatuses::of(const std::string& name) const {
    PoolStatus status;
    {
        const MutexLock lock(mutex_);
        const auto found = status_.find(name);
        if (found != status_.end()) status = found->second;
    }
    count(name, status);
    return status;
}

PoolStatus PoolStatuses::first(const Pool& pool) const {
    PoolStatus known = of(pool.name);
    outside_.tell(pool.spec, known);
    known.schedule = scheduleStatus(pool.spec, history_.clock.wall());
    return known;
}

/// Sets the present counts; the reconciler follows a little later.
void PoolStatuses::count(const std::string& name, PoolStatus& status) const {
    const pool::PoolCounts counts = supply_.warm.counts(name);
    const auto small = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
    status.ready = small(counts.ready);
    status.claimed = small(counts.claimed);
    status.creating = small(counts.creating + counts.warming);
    status.draining = small(counts.draining);
    status.failed = small(counts.failed);
    status.waiting = small(supply_.line.waiting(name));
}

void PoolStatuses::forget(const std::string& name) {
    const MutexLock lock(mutex_);
    status_.erase(name);
}

}  // namespace hearth::controller
