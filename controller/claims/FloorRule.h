#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "controller/quota/QuotaLedger.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Says whether a claim leaves other tenants the pool's workspaces that they are guaranteed. Made
/// anew for each claim: its cost grows only with the number of tenants that have a guarantee there.
/// Not thread-safe.
class FloorRule {
public:
    FloorRule(const pool::WarmPool& warm, const QuotaLedger& quotas, const std::string& pool);

    /// True if no tenant has a guarantee.
    bool none() const { return tenants_.empty(); }
    /// True if the tenant has less than it is guaranteed, also with `more`.
    bool under(const std::string& tenant, std::size_t more = 0) const {
        return left(tenant) > more;
    }
    /// Returns how many workspaces the other tenants lack of their guarantees.
    std::size_t lackOfOthers(const std::string& tenant) const { return kept_ - left(tenant); }
    /// True if `count` more leave the other tenants' guarantees free, in a pool of `most`.
    bool leavesOthers(const std::string& tenant, std::size_t count, std::size_t most) const {
        return claimed_ + count + kept_ - left(tenant) <= most;
    }

private:
    std::size_t left(const std::string& tenant) const;

    std::vector<std::string> tenants_;  ///< sorted
    std::vector<std::size_t> left_;     ///< how much of its guarantee each one still lacks
    std::size_t kept_ = 0;              ///< the sum of left_
    std::size_t claimed_ = 0;
};

}  // namespace hearth::controller
