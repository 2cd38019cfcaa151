#include "api/auth/WorkerShares.h"

#include <chrono>

#include "base/Error.h"

namespace hearth::auth {

std::shared_ptr<void> WorkerShares::take(const std::string& tenant) const {
    if (std::shared_ptr<void> taken = place(&Counts::held, limit_, tenant)) return taken;
    throw Error(ErrorCode::RateLimited, "tenant " + tenant + " has " + std::to_string(limit_) +
                                            " requests under way, which is its share of the server")
        .hint("wait for some of them to end, or run with background: true")
        .retryAfter(std::chrono::seconds(1));
}

std::shared_ptr<void> WorkerShares::takeAsOperator(const std::string& tenant) const {
    if (std::shared_ptr<void> taken = place(&Counts::reserved, kReserved, tenant)) return taken;
    return take(tenant);
}

std::shared_ptr<void> WorkerShares::place(Held Counts::*of, std::size_t limit,
                                          const std::string& tenant) const {
    {
        const std::lock_guard lock(counts_->mutex);
        std::size_t& held = ((*counts_).*of)[tenant];
        if (held >= limit) return nullptr;
        ++held;
    }
    // Only its deleter matters; it points at something so that it is not null.
    return {counts_.get(), [counts = counts_, of, tenant](void*) {
                const std::lock_guard lock(counts->mutex);
                Held& all = (*counts).*of;
                const auto found = all.find(tenant);
                if (--found->second == 0) all.erase(found);
            }};
}

}  // namespace hearth::auth
