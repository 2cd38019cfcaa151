#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <string>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::rest {

/// Answers, by Idempotency-Key, of creations that the services themselves do not remember
/// (tokens, pools, links, packages). They are kept in memory for kKeep, the latest kMost of each
/// tenant and kMostBytes in all of them; a restart forgets them. A longer answer is not kept. For
/// workspaces, executions and contexts the services keep their own, stronger promises. Failures are
/// not kept: a request that failed may be sent again. Thread-safe.
class IdempotencyCache {
public:
    static constexpr std::chrono::minutes kKeep{60};
    static constexpr std::size_t kMost = 1000;
    static constexpr std::size_t kMostBytes = 1U << 20U;

    explicit IdempotencyCache(const Clock& clock) : clock_(clock) {}

    /// The kept answer for a tenant's `scope` (operation, path and key), with Idempotency-Replayed;
    /// or the result of `make`, which is kept. Throws Error(IdempotencyInFlight) while another
    /// request makes it, Error(IdempotencyMismatch) if `fingerprint` is another request's, and the
    /// exceptions of `make`.
    api::Response answer(const std::string& tenant, const std::string& scope,
                         const std::string& fingerprint,
                         const std::function<api::Response()>& make);

private:
    struct Kept {
        std::string fingerprint;
        bool made = false;
        int status = 0;
        api::HeaderFields headers;
        std::string body;
        TimePoint until;
    };
    using Key = std::pair<std::string, std::string>;  ///< tenant, scope
    /// A tenant's kept answers, oldest first.
    struct Made {
        std::list<Key> keys;
        std::size_t bytes = 0;
    };
    /// Forgets what is too old or too much.
    void forgetOld(Made& made) HEARTH_REQUIRES(mutex_);
    /// The same for every tenant, because some never come back; at most once in kKeep.
    void forgetAbsent() HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    Mutex mutex_;
    std::map<Key, Kept> kept_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, Made> made_ HEARTH_GUARDED_BY(mutex_);  ///< by tenant
    TimePoint looked_ HEARTH_GUARDED_BY(mutex_);                  ///< at all tenants
};

}  // namespace hearth::rest
