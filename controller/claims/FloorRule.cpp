#include "controller/claims/FloorRule.h"

#include <algorithm>

namespace hearth::controller {

FloorRule::FloorRule(const pool::WarmPool& warm, const QuotaLedger& quotas,
                     const std::string& pool) {
    const std::map<std::string, std::uint32_t> floors = quotas.floors(pool);
    if (floors.empty()) return;
    tenants_.reserve(floors.size());
    left_.reserve(floors.size());
    for (const auto& [tenant, floor] : floors) {
        tenants_.push_back(tenant);
        left_.push_back(floor);
    }
    claimed_ = warm.counts(pool).claimed;
    const std::vector<std::size_t> held = warm.claimedBy(pool, tenants_);
    for (std::size_t i = 0; i < left_.size(); ++i) {
        left_[i] -= std::min(left_[i], held[i]);
        kept_ += left_[i];
    }
}

std::size_t FloorRule::left(const std::string& tenant) const {
    const auto found = std::lower_bound(tenants_.begin(), tenants_.end(), tenant);
    if (found == tenants_.end() || *found != tenant) return 0;
    return left_[static_cast<std::size_t>(found - tenants_.begin())];
}

}  // namespace hearth::controller
