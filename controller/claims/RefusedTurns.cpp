#include "controller/claims/RefusedTurns.h"

#include <algorithm>

namespace hearth::controller {
namespace {

/// A client may be late by this much.
constexpr std::chrono::seconds kLate{1};

}  // namespace

void RefusedTurns::refused(const std::string& tenant, std::size_t weight,
                           std::chrono::seconds retry_after, TimePoint now) {
    std::erase_if(turns_, [&](const Turn& each) { return each.until <= now; });
    auto turn = std::find_if(turns_.begin(), turns_.end(),
                             [&](const Turn& each) { return each.tenant == tenant; });
    if (turn == turns_.end()) {
        if (turns_.size() == kMostTenants) return;
        turn = turns_.insert(turns_.end(), {tenant, weight, weight});
    }
    turn->weight = weight;
    turn->claims = std::min(turn->claims + 1, turn->left);
    turn->kept = std::min(retry_after, kLongestRetryAfter) + kLate;
    turn->until = now + turn->kept;
}

void RefusedTurns::served(const std::string& tenant, bool under, TimePoint now) {
    const auto turn = std::find_if(turns_.begin(), turns_.end(),
                                   [&](const Turn& each) { return each.tenant == tenant; });
    if (turn == turns_.end()) return;
    turn->until = now + turn->kept;
    if (under) return;
    turn->claims -= std::min<std::size_t>(turn->claims, 1);
    if (--turn->left > 0) return;
    turn->left = turn->weight;
    turn->claims = 0;
    turns_.splice(turns_.end(), turns_, turn);
}

std::size_t RefusedTurns::before(const std::string& tenant, const FloorRule& floors,
                                 std::size_t most, TimePoint now) const {
    const bool under = floors.under(tenant);
    std::size_t left = 0;
    bool ahead = true;
    for (const Turn& each : turns_) {
        if (each.tenant == tenant) {
            ahead = false;
        } else if (each.until > now && floors.leavesOthers(each.tenant, 1, most)) {
            const bool first = floors.under(each.tenant);
            if (first == under ? ahead : first) left += each.claims;
        }
    }
    return left;
}

}  // namespace hearth::controller
