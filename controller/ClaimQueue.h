#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/Error.h"
#include "controller/Breaker.h"
#include "controller/Patience.h"
#include "controller/PoolSpec.h"
#include "controller/WorkQueue.h"
#include "metrics/Metrics.h"
#include "pool/WarmPool.h"

namespace hearth::controller {

/// Admits claims to a pool: at once while a sandbox is ready, else in order of arrival as the
/// spec's onEmpty says. Thread-safe. (Fairness among tenants takes its place here.)
class ClaimQueue {
public:
    ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const Breaker& breaker,
               metrics::Metrics& metrics, const Clock& clock);

    struct Claimant {
        std::string workspace;
        std::string tenant;
        Patience patience{};
        bool tell_why = false;  ///< may know why a pool is degraded: it may tell of the host
    };

    /// A sandbox that is now the caller's alone. Blocks up to the spec's maxWait, or
    /// the claimant's patience if that is less; who takes the claim back leaves the line at once,
    /// and a sandbox that it was given by then goes to the next. Errors:
    /// PoolExhausted, PoolDegraded, Unavailable (shutting down, taken back); MustWait.
    pool::Member acquire(const Pool& pool, const Claimant& claimant);
    /// A sandbox of the pool has become ready.
    void offer(const std::string& pool);
    /// Nothing can be made for the pool (Breaker::layer): who waits for it need not.
    void tellHopeless(const std::string& pool);
    /// Every waiting and later claim is refused with this. The first word counts.
    void close(const Error& why);
    std::size_t waiting(const std::string& pool) const;

private:
    struct Waiter {
        const Claimant* claimant = nullptr;
        std::condition_variable_any wake;
        std::optional<pool::Member> member;
    };
    using Line = std::deque<Waiter*>;

    /// Gives out what is ready to those of a line who have none yet. Under mutex_.
    void serve(const std::string& pool);
    [[noreturn]] void refuse(const Pool& pool, std::size_t waiting) const;
    [[noreturn]] void refuseDegraded(const Pool& pool, const Claimant& claimant) const;
    bool degraded(const Pool& pool) const;
    void refuseClosed() const;

    pool::WarmPool& warm_;
    WorkQueue& work_;
    const Breaker& breaker_;
    metrics::Metrics& metrics_;
    const Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, Line> lines_;  // guarded by mutex_
    std::optional<Error> closed_;        // guarded by mutex_; why
};

}  // namespace hearth::controller
