#include "api/auth/WorkerShares.h"

#include <chrono>

#include "base/Error.h"

namespace hearth::auth {

std::shared_ptr<void> WorkerShares::take(const std::string& tenant) const {
    {
        const std::lock_guard lock(counts_->mutex);
        std::size_t& held = counts_->held[tenant];
        if (held >= limit_) {
            throw Error(ErrorCode::RateLimited,
                        "tenant " + tenant + " has " + std::to_string(held) +
                            " requests under way, which is its share of the server")
                .hint("wait for some of them to end, or run with background: true")
                .retryAfter(std::chrono::seconds(1));
        }
        ++held;
    }
    return {nullptr, [counts = counts_, tenant](void*) {
                const std::lock_guard lock(counts->mutex);
                const auto found = counts->held.find(tenant);
                if (--found->second == 0) counts->held.erase(found);
            }};
}

}  // namespace hearth::auth
