#include "api/rest/Replays.h"

#include "base/Error.h"

namespace hearth::rest {

void Replays::forgetOld() {
    const TimePoint now = clock_.now();
    while (!order_.empty()) {
        const auto oldest = kept_.find(order_.front());
        if (order_.size() <= kMost && oldest->second.until > now) return;
        kept_.erase(oldest);
        order_.pop_front();
    }
}

api::Response Replays::answer(const std::string& scope, const std::string& fingerprint,
                              const std::function<api::Response()>& make) {
    {
        const std::scoped_lock lock(mutex_);
        forgetOld();
        const auto [at, fresh] = kept_.try_emplace(scope);
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
            response.headers.emplace_back("Idempotency-Replayed", "true");
            response.body = kept.body;
            return response;
        }
        kept.fingerprint = fingerprint;
    }
    /// Takes the place away again unless the answer is there.
    struct Place {
        ~Place() {
            if (!made) {
                const std::scoped_lock lock(all.mutex_);
                all.kept_.erase(scope);
            }
        }
        Replays& all;
        const std::string& scope;
        bool made = false;
    } place{*this, scope};
    api::Response response = make();
    if (const auto* body = std::get_if<std::string>(&response.body)) {
        const std::scoped_lock lock(mutex_);
        Kept& kept = kept_[scope];
        kept.made = place.made = true;
        kept.status = response.status;
        kept.headers = response.headers;
        kept.body = *body;
        kept.until = clock_.now() + kKeep;
        order_.push_back(scope);
    }
    return response;
}

}  // namespace hearth::rest
