#include "api/rest/gate/IdempotencyCache.h"

#include <iterator>

#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::rest {

void IdempotencyCache::forgetOld(Made& made) {
    const TimePoint now = clock_.now();
    while (!made.keys.empty()) {
        const auto oldest = kept_.find(made.keys.front());
        const bool fits = made.keys.size() <= kMost && made.bytes <= kMostBytes;
        if (fits && oldest->second.until > now) return;
        made.bytes -= oldest->second.body.size();
        kept_.erase(oldest);
        made.keys.pop_front();
    }
}

void IdempotencyCache::forgetAbsent() {
    const TimePoint now = clock_.now();
    if (now - looked_ < kKeep) return;
    looked_ = now;
    for (auto at = made_.begin(); at != made_.end();) {
        forgetOld(at->second);
        at = at->second.keys.empty() ? made_.erase(at) : std::next(at);
    }
}

api::Response IdempotencyCache::answer(const std::string& tenant, const std::string& scope,
                                       const std::string& fingerprint,
                                       const std::function<api::Response()>& make) {
    const Key key{tenant, scope};
    {
        const MutexLock lock(mutex_);
        forgetAbsent();
        forgetOld(made_[tenant]);
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
    const auto* body = std::get_if<std::string>(&response.body);
    if (body != nullptr && body->size() <= kMostBytes) {
        const MutexLock lock(mutex_);
        Kept& kept = kept_[key];
        kept.made = true;
        failed.cancel();
        kept.status = response.status;
        kept.headers = response.headers;
        kept.body = *body;
        kept.until = clock_.now() + kKeep;
        Made& made = made_[tenant];
        made.keys.push_back(key);
        made.bytes += body->size();
        forgetOld(made);
    }
    return response;
}

}  // namespace hearth::rest
