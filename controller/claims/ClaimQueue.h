#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Mutex.h"
#include "base/task/Task.h"
#include "base/tenants/FairLine.h"
#include "base/tenants/TenantPlaces.h"
#include "controller/claims/RefusedTurns.h"
#include "controller/contract/Timeline.h"
#include "controller/queue/CircuitBreaker.h"
#include "controller/queue/WorkQueue.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/spec/PoolSpec.h"
#include "metrics/Metrics.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Admits claims to a pool: at once while a sandbox is ready, else in line as the spec's onEmpty
/// says. Tenants take turns in a line and share a full one: a new claim of a tenant with fewer
/// displaces the newest claim of the tenant with most. Where there is no line (onEmpty: Fail), they
/// take turns, too (RefusedTurns). A tenant that has less of a pool than its
/// quota guarantees comes first, and other tenants' guarantees are kept free. A claim of several
/// holds up others until enough are ready; if it leaves unserved, its tenant's next ones do not for
/// as long. Thread-safe; outlives every task of acquire().
class ClaimQueue {
public:
    /// How many claims may stand in all lines (TenantPlaces).
    struct Bounds {
        std::size_t all = 1024;
        std::size_t of_tenant = 256;
    };

    ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const CircuitBreaker& breaker,
               metrics::Metrics& metrics, const Clock& clock);
    ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const CircuitBreaker& breaker,
               metrics::Metrics& metrics, const Clock& clock, Bounds bounds,
               QuotaLedger quotas = {});

    struct Claimant {
        std::string tenant;
        /// The longest wait, if the pool's is longer.
        std::chrono::milliseconds patience = std::chrono::hours(1);
        bool tell_why = false;        ///< may see why a pool is degraded; that may reveal the host
        ClaimScene* scene = nullptr;  ///< gets the place of a claim that joins the line
    };

    /// Returns a sandbox for each of the workspaces, all at once, that belong to the caller alone.
    /// Waits in line up to the spec's maxWait or the claimant's patience; to destroy the task
    /// leaves the line at once, and sandboxes already given go to the next claims. `pool` and the
    /// scene outlive the task. Errors: PoolExhausted (also if displaced by another tenant),
    /// PoolDegraded, RateLimited (the tenant's limit of waiting claims), Unavailable (the limit of
    /// all; shutting down).
    Task<std::vector<pool::Member>> acquire(const Pool& pool, Claimant claimant,
                                            std::vector<std::string> workspaces);
    /// Returns an unused sandbox from acquire(): the next claim in line gets it.
    void giveBack(const pool::Member& member);
    /// Reports that a sandbox of the pool has become ready.
    void offer(const std::string& pool);
    /// Forgets the line of a pool that is gone.
    void forget(const std::string& pool);
    /// Fails claims that wait in vain now: nothing can be made for the pool, and it has no sandbox
    /// that could come free.
    void failWaiting(const std::string& pool);
    /// Reasons not to serve claims, each set and withdrawn by itself.
    enum class Gate : std::uint8_t {
        ReadyOnly,  ///< claims get only ready sandboxes: instead of waiting they are refused
        Drained,    ///< every waiting and new claim is refused
        Closed,     ///< the same for good; only the first reason counts
    };
    /// Shuts a gate with the error that claims get; nullopt opens it.
    void setGate(Gate gate, std::optional<Error> why);
    /// Says that at present at most `most` sandboxes of the pool can be ready at once. A claim of
    /// more stays in line but does not hold up other claims.
    void limit(const std::string& pool, std::size_t most);
    /// Says how many sandboxes are to be ready: a pool that keeps no line holds all but one of them
    /// back for tenants that have less than they are guaranteed.
    void desire(const std::string& pool, std::size_t ready);
    /// Returns how many sandboxes the claims in the pool's line need.
    std::size_t waiting(const std::string& pool) const;
    /// The same, except claims of several that need more than can be ready at once.
    std::size_t needed(const std::string& pool) const;

    /// Claims that came to a pool in its lifetime, and the ones that found no ready sandbox. A
    /// claim of several counts as so many, but as one if it was refused without a wait.
    struct Arrivals {
        std::uint64_t claims = 0;
        std::uint64_t missed = 0;
    };
    Arrivals arrivals(const std::string& pool) const;

private:
    struct Waiter;
    using WaiterPtr = std::shared_ptr<Waiter>;
    class Ticket;
    struct Line {
        FairLine<WaiterPtr> waiters;
        std::size_t most = SIZE_MAX;         ///< see limit()
        std::size_t desired = 0;             ///< see desire()
        TimePoint served_at{};               ///< the last time, while others waited
        std::optional<double> every_secs{};  ///< moving average of the time between two of them
        Arrivals arrivals{};
        RefusedTurns refused{};
        WaiterPtr blocker{};        ///< the claim of several that now holds up other tenants
        TimePoint blocked_since{};  ///< if there is a blocker
        /// The tenants whose claims of several hold up nobody, and until when. Few: only one claim
        /// blocks at a time, and its tenant is listed no longer than it did.
        std::map<std::string, TimePoint> yielding{};

        void blockedBy(const WaiterPtr& waiter, TimePoint now);
        /// Notes that the waiter leaves unserved.
        void left(const WaiterPtr& waiter, TimePoint now);
        bool yields(const std::string& tenant, TimePoint now) const;
    };

    /// Gives ready sandboxes to a claim that does not stand in line; none if it is not its turn.
    std::vector<pool::Member> takeAtOnce(const Pool& pool, const std::string& tenant,
                                         const std::vector<std::string>& workspaces);
    /// Takes a place in the pool's line, or throws the refusal.
    std::shared_ptr<Ticket> join(const Pool& pool, const Claimant& claimant,
                                 const std::vector<std::string>& workspaces);
    /// Returns the outcome of a wait that is over.
    std::vector<pool::Member> settle(const Pool& pool, const Claimant& claimant, Waiter& waiter);
    void leave(const WaiterPtr& waiter);
    bool over(const Waiter& waiter) const HEARTH_REQUIRES(mutex_);

    /// Gives out ready sandboxes, in turn. The caller notifies the returned waiters after unlock.
    std::vector<WaiterPtr> serve(const std::string& pool) HEARTH_REQUIRES(mutex_);
    /// Takes one ready sandbox for each workspace, or none.
    std::vector<pool::Member> take(const std::string& pool, const std::string& tenant,
                                   const std::vector<std::string>& workspaces)
        HEARTH_REQUIRES(mutex_);
    /// The next waiter whose turn it is. Null if every one must leave the free sandboxes to other
    /// tenants, or needs more than there can be, or yields.
    WaiterPtr nextOf(const std::string& pool, const Line& line) const HEARTH_REQUIRES(mutex_);
    /// Sums up the sandboxes of the claims in line that count; `counts` gets how many each needs.
    std::size_t countNeeded(const std::string& pool,
                            bool (*counts)(std::size_t count, const Line& line)) const;
    void giveBackAll(const std::vector<pool::Member>& members) HEARTH_REQUIRES(mutex_);
    /// Takes the waiter out of its line.
    void remove(const WaiterPtr& waiter) HEARTH_REQUIRES(mutex_);
    /// Reports that the line has become longer or shorter.
    void tellDepth(const std::string& pool) HEARTH_REQUIRES(mutex_);
    static void tell(const std::vector<WaiterPtr>& waiters);
    static constexpr double kLongestRetryAfter = 300;
    /// Rounds up for a client: at least one second.
    static std::chrono::seconds wholeSeconds(double seconds, double most);
    /// How long a claim at this place of the pool's line waits: computed from start times while the
    /// pool has room for it, else from the measured pace of the line; nullopt if that is unknown.
    std::optional<double> secondsTo(const std::string& pool, std::size_t place,
                                    std::size_t max_members, std::size_t parallel_creates) const
        HEARTH_REQUIRES(mutex_);
    /// How long until a claim leaves a line at the latest, so far as known: the tenant's first
    /// claim, or any tenant's if none is given.
    std::chrono::seconds untilPlace(const std::optional<std::string>& tenant) const
        HEARTH_REQUIRES(mutex_);
    /// The Retry-After of a refusal.
    std::chrono::seconds againIn(const Pool& pool) const HEARTH_REQUIRES(mutex_);
    /// `more`: why, if that is not the lack of a sandbox alone.
    [[noreturn]] void refuse(const Pool& pool, const std::string& more = {}) const
        HEARTH_REQUIRES(mutex_);
    /// Refuses a claim of a pool that keeps no line.
    [[noreturn]] void refuseTurn(const Pool& pool, const std::string& tenant, std::size_t count)
        HEARTH_REQUIRES(mutex_);
    [[noreturn]] void refuseDegraded(const Pool& pool, const Claimant& claimant) const;
    /// True if a claim in line need not wait any longer: see failWaiting().
    bool waitsInVain(const std::string& pool) const;
    /// True if it is degraded only for want of disk, and has sandboxes that will end.
    bool mayComeFree(const Pool& pool) const;
    /// Takes a place for one more claim, or throws the refusal.
    std::shared_ptr<void> placeFor(const std::string& tenant) HEARTH_REQUIRES(mutex_);
    bool degraded(const Pool& pool) const;
    void refuseClosed() const HEARTH_REQUIRES(mutex_);
    /// The waiters of all lines.
    std::vector<WaiterPtr> everyone() const HEARTH_REQUIRES(mutex_);

    pool::WarmPool& warm_;
    WorkQueue& work_;
    const CircuitBreaker& breaker_;
    metrics::Metrics& metrics_;
    const Clock& clock_;
    TenantPlaces places_;
    const QuotaLedger quotas_;
    mutable Mutex mutex_;
    std::map<std::string, Line> lines_ HEARTH_GUARDED_BY(mutex_);
    const std::optional<Error>& shut(Gate gate) const HEARTH_REQUIRES(mutex_) {
        return gates_[static_cast<std::size_t>(gate)];
    }
    std::array<std::optional<Error>, 3> gates_ HEARTH_GUARDED_BY(mutex_);  // the reasons, by gate
};

}  // namespace hearth::controller
