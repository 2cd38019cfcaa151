#include "controller/claims/ClaimQueue.h"

#include <algorithm>

#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "controller/claims/FloorRule.h"

namespace hearth::controller {
namespace {

/// The weight of the newest interval in the moving average.
constexpr double kNewIntervalShare = 0.25;
constexpr double kLongestEstimate = 3600;

}  // namespace

/// One claim in a line. The queue's mutex guards the changing members.
struct ClaimQueue::Waiter : std::enable_shared_from_this<Waiter> {
    std::string pool;
    std::string tenant;
    std::vector<std::string> workspaces;  ///< never empty
    std::uint32_t parallel_creates = 1;
    std::uint32_t max_members = 0;
    TimePoint since{};
    TimePoint until{};
    std::shared_ptr<void> place;  ///< while it is in line
    bool in_line = true;
    bool displaced = false;
    TimePoint::duration blocked{};      ///< how long it held up other tenants
    std::vector<pool::Member> members;  ///< empty, or one for each workspace
    Subscribers subscribers;
};

/// A claim's hold on its place in line; destroying it leaves the line.
class ClaimQueue::Ticket final : public Waitable {
public:
    Ticket(ClaimQueue& queue, WaiterPtr waiter) : queue_(queue), waiter_(std::move(waiter)) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket() override { queue_.leave(waiter_); }

    const WaiterPtr& waiter() const { return waiter_; }
    bool ready() const override {
        const MutexLock lock(queue_.mutex_);
        return queue_.over(*waiter_);
    }
    TimePoint until() const override { return waiter_->until; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return waiter_->subscribers.add(std::move(wake));
    }
    std::optional<Progress> progress() const override;

private:
    ClaimQueue& queue_;
    const WaiterPtr waiter_;
};

ClaimQueue::ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const CircuitBreaker& breaker,
                       metrics::Metrics& metrics, const Clock& clock)
    : ClaimQueue(warm, work, breaker, metrics, clock, Bounds()) {}

ClaimQueue::ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const CircuitBreaker& breaker,
                       metrics::Metrics& metrics, const Clock& clock, Bounds bounds,
                       QuotaLedger quotas)
    : warm_(warm),
      work_(work),
      breaker_(breaker),
      metrics_(metrics),
      clock_(clock),
      places_(bounds.all, bounds.of_tenant),
      quotas_(std::move(quotas)) {}

Task<std::vector<pool::Member>> ClaimQueue::acquire(const Pool& pool, Claimant claimant,
                                                    std::vector<std::string> workspaces) {
    std::vector<pool::Member> members = takeAtOnce(pool, claimant.tenant, workspaces);
    if (!members.empty()) co_return members;
    std::shared_ptr<Ticket> ticket = join(pool, claimant, workspaces);
    co_await ticket;
    co_return settle(pool, claimant, *ticket->waiter());
}

std::vector<pool::Member> ClaimQueue::takeAtOnce(const Pool& pool, const std::string& tenant,
                                                 const std::vector<std::string>& workspaces) {
    const MutexLock lock(mutex_);
    refuseClosed();
    // Claims in line come first, if one of them may take its turn.
    Line& line = lines_[pool.name];
    if (!line.waiters.empty() && nextOf(pool.name, line)) return {};
    const std::size_t count = workspaces.size();
    const std::size_t most = pool.spec.max_members;
    const FloorRule floors(warm_, quotas_, pool.name);
    if (!floors.none() && !floors.leavesOthers(tenant, count, most)) return {};
    const bool turns = pool.spec.on_empty == OnEmpty::Fail;
    if (turns) {
        const std::size_t held = std::min(floors.lackOfOthers(tenant),
                                          line.desired - std::min<std::size_t>(line.desired, 1));
        const std::size_t before = line.refused.before(tenant, floors, most, clock_.now());
        if (warm_.counts(pool.name).ready < count + std::max(held, before)) return {};
    }
    std::vector<pool::Member> members = take(pool.name, tenant, workspaces);
    if (members.empty()) return members;
    line.arrivals.claims += count;
    if (turns) line.refused.served(tenant, floors.under(tenant, count), clock_.now());
    return members;
}

std::shared_ptr<ClaimQueue::Ticket> ClaimQueue::join(const Pool& pool, const Claimant& claimant,
                                                     const std::vector<std::string>& workspaces) {
    auto waiter = std::make_shared<Waiter>();
    waiter->pool = pool.name;
    waiter->tenant = claimant.tenant;
    waiter->workspaces = workspaces;
    waiter->parallel_creates = pool.spec.parallel_creates;
    waiter->max_members = pool.spec.max_members;
    waiter->since = clock_.now();
    waiter->until = waiter->since + std::min(pool.spec.max_wait, claimant.patience);
    std::optional<WaiterPtr> displaced;
    std::vector<WaiterPtr> served;
    {
        const MutexLock lock(mutex_);
        Line& of_pool = lines_[pool.name];
        FairLine<WaiterPtr>& line = of_pool.waiters;
        const bool full = line.size() >= pool.spec.max_queue;
        const bool fails = pool.spec.on_empty == OnEmpty::Fail || shut(Gate::ReadyOnly);
        const bool hopeless = degraded(pool) && (full || fails || !mayComeFree(pool));
        // A refused claim of several counts as one: repeating it must not inflate the forecast.
        ++of_pool.arrivals.claims;
        ++of_pool.arrivals.missed;
        metrics_.poolExhausted(pool.name);
        if (const auto& why = shut(Gate::ReadyOnly)) throw *why;
        if (hopeless) refuseDegraded(pool, claimant);
        if (fails) refuseTurn(pool, claimant.tenant, workspaces.size());
        waiter->place = placeFor(claimant.tenant);
        if (full) {
            displaced = line.displaceFor(claimant.tenant);
            if (!displaced) refuse(pool);
            (*displaced)->in_line = false;
            (*displaced)->displaced = true;
            (*displaced)->place.reset();
        }
        of_pool.arrivals.claims += workspaces.size() - 1;
        of_pool.arrivals.missed += workspaces.size() - 1;
        line.push(claimant.tenant, waiter, quotas_.weightOf(claimant.tenant), workspaces.size());
        tellDepth(pool.name);
        if (claimant.scene != nullptr) {
            claimant.scene->place =
                static_cast<std::uint32_t>(line.before(claimant.tenant, waiter) + 1);
            claimant.scene->pool.waiting = static_cast<std::uint32_t>(line.size());
        }
        // A sandbox may have become ready since the caller looked.
        served = serve(pool.name);
    }
    if (displaced) tell({*displaced});
    tell(served);
    work_.add({WorkKind::Pool, pool.name});  // the reconciler counts waiting claims
    if (claimant.scene != nullptr) claimant.scene->pressure = hostPressure();
    return std::make_shared<Ticket>(*this, std::move(waiter));
}

bool ClaimQueue::over(const Waiter& waiter) const {
    const bool shut =
        std::any_of(gates_.begin(), gates_.end(), [](const auto& why) { return why.has_value(); });
    return !waiter.members.empty() || waiter.displaced || shut || clock_.now() >= waiter.until ||
           waitsInVain(waiter.pool);
}

std::vector<pool::Member> ClaimQueue::settle(const Pool& pool, const Claimant& claimant,
                                             Waiter& waiter) {
    UniqueMutexLock lock(mutex_);
    remove(waiter.shared_from_this());
    std::vector<pool::Member> members = std::exchange(waiter.members, {});
    if (!members.empty()) {
        metrics_.claimQueued(pool.name, toSeconds(clock_.now() - waiter.since));
        return members;
    }
    // The next claims in line may be content with sandboxes that this one could not use.
    const std::vector<WaiterPtr> next = serve(pool.name);
    lock.unlock();
    tell(next);
    work_.add({WorkKind::Pool, pool.name});
    lock.lock();
    refuseClosed();
    if (const auto& why = shut(Gate::ReadyOnly)) throw *why;
    if (degraded(pool)) refuseDegraded(pool, claimant);
    refuse(pool, waiter.displaced
                     ? "; a tenant with fewer waiting claims took the place of this one"
                     : "");
}

void ClaimQueue::giveBack(const pool::Member& member) {
    std::vector<WaiterPtr> served;
    {
        const MutexLock lock(mutex_);
        if (warm_.giveBack(member.id)) served = serve(member.pool);
    }
    tell(served);
    work_.add({WorkKind::Pool, member.pool});
}

void ClaimQueue::leave(const WaiterPtr& waiter) {
    std::vector<WaiterPtr> served;
    {
        const MutexLock lock(mutex_);
        const bool stood = waiter->in_line;
        remove(waiter);
        const std::vector<pool::Member> members = std::exchange(waiter->members, {});
        if (members.empty() && !stood) return;
        giveBackAll(members);
        served = serve(waiter->pool);  // also without members: it may have held up others
    }
    tell(served);
    work_.add({WorkKind::Pool, waiter->pool});  // the reconciler counts waiting claims
}

void ClaimQueue::remove(const WaiterPtr& waiter) {
    if (!waiter->in_line) return;
    waiter->in_line = false;
    Line& line = lines_[waiter->pool];
    line.waiters.erase(waiter->tenant, waiter);
    line.left(waiter, clock_.now());
    if (line.waiters.empty()) line.served_at = {};
    waiter->place.reset();
    tellDepth(waiter->pool);
}

void ClaimQueue::Line::blockedBy(const WaiterPtr& waiter, TimePoint now) {
    if (blocker == waiter) return;
    if (blocker) blocker->blocked += now - blocked_since;
    blocker = waiter;
    blocked_since = now;
}

void ClaimQueue::Line::left(const WaiterPtr& waiter, TimePoint now) {
    if (blocker == waiter) blockedBy(nullptr, now);
    std::erase_if(yielding, [&](const auto& each) { return each.second <= now; });
    if (waiter->blocked <= TimePoint::duration::zero()) return;
    TimePoint& until = yielding[waiter->tenant];
    until = std::max(until, now + waiter->blocked);
}

bool ClaimQueue::Line::yields(const std::string& tenant, TimePoint now) const {
    const auto found = yielding.find(tenant);
    return found != yielding.end() && now < found->second;
}

void ClaimQueue::tellDepth(const std::string& pool) {
    metrics_.claimQueueDepth(pool, static_cast<double>(lines_[pool].waiters.size()));
}

std::vector<pool::Member> ClaimQueue::take(const std::string& pool, const std::string& tenant,
                                           const std::vector<std::string>& workspaces) {
    std::vector<pool::Member> members;
    if (workspaces.size() > 1 && warm_.counts(pool).ready < workspaces.size()) return members;
    members.reserve(workspaces.size());
    for (const std::string& workspace : workspaces) {
        std::optional<pool::Member> member = warm_.claim(pool, workspace, tenant);
        if (!member) {  // one was retired meanwhile
            for (const pool::Member& taken : members) warm_.giveBack(taken.id);
            members.clear();
            break;
        }
        members.push_back(*std::move(member));
    }
    return members;
}

ClaimQueue::WaiterPtr ClaimQueue::nextOf(const std::string& pool, const Line& line) const {
    const FloorRule floors(warm_, quotas_, pool);
    const TimePoint now = clock_.now();
    const auto yields = [&](const std::string& tenant, const WaiterPtr& waiter) {
        return waiter->workspaces.size() > 1 && line.yields(tenant, now);
    };
    const auto may = [&](const std::string& tenant, const WaiterPtr& waiter) {
        const std::size_t count = waiter->workspaces.size();
        const bool passed = count > line.most || yields(tenant, waiter);
        if (passed && count > warm_.counts(pool).ready) return false;
        return floors.none() || floors.leavesOthers(tenant, count, waiter->max_members);
    };
    const WaiterPtr* found = nullptr;
    if (!floors.none()) {
        found = line.waiters.nextIf([&](const std::string& tenant, const WaiterPtr& waiter) {
            return floors.under(tenant) && may(tenant, waiter);
        });
    }
    if (found == nullptr && !line.yielding.empty()) {
        found = line.waiters.nextIf([&](const std::string& tenant, const WaiterPtr& waiter) {
            return !yields(tenant, waiter) && may(tenant, waiter);
        });
    }
    if (found == nullptr) found = line.waiters.nextIf(may);
    return found == nullptr ? nullptr : *found;
}

void ClaimQueue::giveBackAll(const std::vector<pool::Member>& members) {
    for (const pool::Member& member : members) warm_.giveBack(member.id);
}

void ClaimQueue::offer(const std::string& pool) {
    std::vector<WaiterPtr> served;
    {
        const MutexLock lock(mutex_);
        served = serve(pool);
    }
    tell(served);
}

std::vector<ClaimQueue::WaiterPtr> ClaimQueue::serve(const std::string& pool) {
    std::vector<WaiterPtr> served;
    const auto found = lines_.find(pool);
    if (found == lines_.end()) return served;
    Line& line = found->second;
    WaiterPtr blocker;
    while (!line.waiters.empty()) {
        const WaiterPtr next = nextOf(pool, line);
        if (!next) break;
        // A claim of several holds none while it waits: it stays first in line until all are ready.
        next->members = take(pool, next->tenant, next->workspaces);
        if (next->members.empty()) {
            const bool others = line.waiters.size() > line.waiters.of(next->tenant);
            if (others && next->workspaces.size() > 1 && warm_.counts(pool).ready > 0) {
                blocker = next;
            }
            break;
        }
        line.waiters.popIf([&](const std::string& tenant) { return tenant == next->tenant; });
        next->in_line = false;
        next->place.reset();
        tellDepth(pool);
        const TimePoint now = clock_.now();
        if (line.served_at != TimePoint{}) {
            const double took = toSeconds(now - line.served_at);
            line.every_secs = line.every_secs
                                  ? *line.every_secs + kNewIntervalShare * (took - *line.every_secs)
                                  : took;
        }
        // If the line is empty, the next interval says nothing about its pace.
        line.served_at = line.waiters.empty() ? TimePoint{} : now;
        served.push_back(next);
    }
    line.blockedBy(blocker, clock_.now());
    return served;
}

void ClaimQueue::tell(const std::vector<WaiterPtr>& waiters) {
    for (const WaiterPtr& waiter : waiters) waiter->subscribers.notify();
}

void ClaimQueue::forget(const std::string& pool) {
    const MutexLock lock(mutex_);
    const auto found = lines_.find(pool);
    if (found != lines_.end() && found->second.waiters.empty()) lines_.erase(found);
}

void ClaimQueue::failWaiting(const std::string& pool) {
    std::vector<WaiterPtr> all;
    {
        const MutexLock lock(mutex_);
        const auto found = lines_.find(pool);
        if (found == lines_.end()) return;
        found->second.waiters.each([&](const WaiterPtr& waiter) { all.push_back(waiter); });
    }
    tell(all);
}

std::chrono::seconds ClaimQueue::untilPlace(const std::optional<std::string>& tenant) const {
    double soonest = kLongestRetryAfter;
    const TimePoint now = clock_.now();
    for (const auto& [pool, line] : lines_) {
        const WaiterPtr* first = line.waiters.nextIf(
            [&](const std::string& each, const WaiterPtr&) { return !tenant || each == *tenant; });
        if (first == nullptr) continue;
        const Waiter& waiter = **first;
        const std::size_t place = line.waiters.before(waiter.tenant, *first) + 1;
        soonest = std::min({soonest, toSeconds(waiter.until - now),
                            secondsTo(pool, place, waiter.max_members, waiter.parallel_creates)
                                .value_or(kLongestRetryAfter)});
    }
    return wholeSeconds(soonest, kLongestRetryAfter);
}

void ClaimQueue::refuseClosed() const {
    if (const auto& why = shut(Gate::Closed)) throw *why;
    if (const auto& why = shut(Gate::Drained)) throw *why;
}

void ClaimQueue::setGate(Gate gate, std::optional<Error> why) {
    std::vector<WaiterPtr> all;
    {
        const MutexLock lock(mutex_);
        std::optional<Error>& reason = gates_[static_cast<std::size_t>(gate)];
        if (gate == Gate::Closed && reason) return;
        reason = std::move(why);
        if (reason) all = everyone();
    }
    tell(all);
}

std::vector<ClaimQueue::WaiterPtr> ClaimQueue::everyone() const {
    std::vector<WaiterPtr> all;
    for (const auto& [name, line] : lines_) {
        line.waiters.each([&](const WaiterPtr& waiter) { all.push_back(waiter); });
    }
    return all;
}

void ClaimQueue::limit(const std::string& pool, std::size_t most) {
    const MutexLock lock(mutex_);
    const auto found = lines_.find(pool);
    if (found != lines_.end()) found->second.most = most;
}

void ClaimQueue::desire(const std::string& pool, std::size_t ready) {
    const MutexLock lock(mutex_);
    lines_[pool].desired = ready;
}

std::size_t ClaimQueue::waiting(const std::string& pool) const {
    return countNeeded(pool, [](std::size_t, const Line&) { return true; });
}

std::size_t ClaimQueue::needed(const std::string& pool) const {
    return countNeeded(
        pool, [](std::size_t count, const Line& line) { return count == 1 || count <= line.most; });
}

std::size_t ClaimQueue::countNeeded(const std::string& pool,
                                    bool (*counts)(std::size_t count, const Line&)) const {
    const MutexLock lock(mutex_);
    const auto found = lines_.find(pool);
    std::size_t sandboxes = 0;
    if (found == lines_.end()) return sandboxes;
    found->second.waiters.each([&](const WaiterPtr& waiter) {
        const std::size_t count = waiter->workspaces.size();
        if (counts(count, found->second)) sandboxes += count;
    });
    return sandboxes;
}

ClaimQueue::Arrivals ClaimQueue::arrivals(const std::string& pool) const {
    const MutexLock lock(mutex_);
    const auto found = lines_.find(pool);
    return found == lines_.end() ? Arrivals{} : found->second.arrivals;
}

std::optional<Waitable::Progress> ClaimQueue::Ticket::progress() const {
    Progress progress;
    progress.what_for = "a sandbox of pool " + waiter_->pool;
    const MutexLock lock(queue_.mutex_);
    if (!waiter_->in_line) return progress;
    const Line& line = queue_.lines_.at(waiter_->pool);
    progress.place = line.waiters.before(waiter_->tenant, waiter_) + 1;
    progress.of = line.waiters.size();
    if (const auto seconds = queue_.secondsTo(waiter_->pool, progress.place, waiter_->max_members,
                                              waiter_->parallel_creates)) {
        progress.estimate = wholeSeconds(*seconds, kLongestEstimate);
    }
    return progress;
}

}  // namespace hearth::controller
