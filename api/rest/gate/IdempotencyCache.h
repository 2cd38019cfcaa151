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
/// tenant; a restart forgets them. For workspaces, executions and contexts the services keep
/// their own, stronger promises. Failures are not kept: a request that failed may be sent again.
/// Thread-safe.
class IdempotencyCache {
public:
    static constexpr std::chrono::minutes kKeep{60};
    static constexpr std::size_t kMost = 1000;

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
    void forgetOld(const std::string& tenant) HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    Mutex mutex_;
    std::map<Key, Kept> kept_ HEARTH_GUARDED_BY(mutex_);
    /// By tenant, oldest first.
    std::map<std::string, std::list<Key>> order_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::rest
