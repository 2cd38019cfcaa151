#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/Error.h"
#include "base/Mutex.h"

namespace hearth::controller {

/// The Idempotency-Keys whose first request is still in progress, by claim id. Thread-safe.
class KeysInFlight {
public:
    /// Holds the key while the returned object lives, which may outlive this one. Throws
    /// Error(IdempotencyInFlight) if another request holds it.
    std::shared_ptr<void> take(const std::string& claim_id) {
        const MutexLock lock(held_->mutex);
        if (!held_->keys.insert(claim_id).second) {
            throw Error(ErrorCode::IdempotencyInFlight,
                        "the first request with this Idempotency-Key is still being answered")
                .retryAfter(std::chrono::seconds(1));
        }
        // Not null, so that its holder can test that it holds one.
        return {held_.get(), [held = held_, claim_id](void*) {
                    const MutexLock ending(held->mutex);
                    held->keys.erase(claim_id);
                }};
    }

private:
    struct Held {
        Mutex mutex;
        std::set<std::string> keys HEARTH_GUARDED_BY(mutex);
    };
    const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace hearth::controller
