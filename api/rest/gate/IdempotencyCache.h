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

/// Answers of creations that the services themselves do not remember by an Idempotency-Key (tokens,
/// pools, links, packages): kept in memory for kKeep, the latest kMost of each tenant. A restart
/// forgets them;
/// what workspaces, executions and contexts promise beyond that is theirs. Failures are not kept: a
/// request that failed may be sent again. Thread-safe.
class IdempotencyCache {
public:
    static constexpr std::chrono::minutes kKeep{60};
    static constexpr std::size_t kMost = 1000;

    explicit IdempotencyCache(const Clock& clock) : clock_(clock) {}

    /// The kept answer of a tenant's `scope` (operation, path and key), with Idempotency-Replayed;
    /// or what `make` gives, which is kept. Throws Error(IdempotencyInFlight) while another one
    /// makes it, Error(IdempotencyMismatch) where `fingerprint` is another one's, and what `make`
    /// throws.
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
    /// A tenant's, oldest first.
    std::map<std::string, std::list<Key>> order_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::rest
