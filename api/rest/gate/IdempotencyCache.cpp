#include "api/rest/gate/IdempotencyCache.h"

#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::rest {

void IdempotencyCache::forgetOld(const std::string& tenant) {
    const TimePoint now = clock_.now();
    std::list<Key>& made = order_[tenant];
    while (!made.empty()) {
        const auto oldest = kept_.find(made.front());
        if (made.size() <= kMost && oldest->second.until > now) return;
        kept_.erase(oldest);
        made.pop_front();
    }
}

api::Response IdempotencyCache::answer(const std::string& tenant, const std::string& scope,
                                       const std::string& fingerprint,
                                       const std::function<api::Response()>& make) {
    const Key key{tenant, scope};
    {
        const MutexLock lock(mutex_);
        forgetOld(tenant);
        const auto [at, fresh] = kept_.try_emplace(key);
        Kept& kept = at->second;
        if (!fresh) {
            if (kept.fingerprint != fingerprint) {
                throw Error(ErrorCode::IdempotencyMismatch,
                            "this Idempotency-Key was sent with another request")
                    .hint("Use a new key for a new request");
            }
            if (!kept.made) {
                throw Error(ErrorCode::IdempotencyInFlight,
                            "the first request with this Idempotency-Key is still under way")
                    .hint("Send it again in a moment")
                    .retryAfter(std::chrono::seconds(1));
            }
            api::Response response;
            response.status = kept.status;
            response.headers = kept.headers;
            response.headers.add("Idempotency-Replayed", "true");
            response.body = kept.body;
            return response;
        }
        kept.fingerprint = fingerprint;
    }
    ScopeExit failed([&] {
        const MutexLock lock(mutex_);
        kept_.erase(key);
    });
    api::Response response = make();
    if (const auto* body = std::get_if<std::string>(&response.body)) {
        const MutexLock lock(mutex_);
        Kept& kept = kept_[key];
        kept.made = true;
        failed.cancel();
        kept.status = response.status;
        kept.headers = response.headers;
        kept.body = *body;
        kept.until = clock_.now() + kKeep;
        order_[tenant].push_back(key);
    }
    return response;
}

}  // namespace hearth::rest
