#pragma once

#include <cstddef>
#include <list>
#include <string>

#include "base/Clock.h"
#include "controller/claims/FloorRule.h"

namespace hearth::controller {

/// The turns of tenants whose claims were refused by a pool that keeps no line (`onEmpty: Fail`): a
/// refused claim is remembered until its client may have come again, and the next sandboxes are its
/// tenant's. Tenants take turns, as many claims in each as their weight; one below its guarantee
/// comes first. Not thread-safe.
class RefusedTurns {
public:
    /// How long a client that keeps to its Retry-After is told to wait, at most.
    static constexpr std::chrono::seconds kLongestRetryAfter{10};
    /// Memory and time of a claim are bounded: refusals of further tenants are not remembered.
    static constexpr std::size_t kMostTenants = 256;

    /// A claim was refused; its client comes again after `retry_after`, or later than a second
    /// after that not at all.
    void refused(const std::string& tenant, std::size_t weight, std::chrono::seconds retry_after,
                 TimePoint now);
    /// A claim of the tenant was served. `under`: it still has less than it is guaranteed, so its
    /// turn goes on.
    void served(const std::string& tenant, bool under, TimePoint now);
    /// How many sandboxes are left to other tenants, whose turns come before this one's, in a pool
    /// of `most`.
    std::size_t before(const std::string& tenant, const FloorRule& floors, std::size_t most,
                       TimePoint now) const;

private:
    struct Turn {
        std::string tenant;
        std::size_t weight = 1;
        std::size_t left = 1;        ///< claims until its end
        std::size_t claims = 0;      ///< refused ones; at most `left` count
        TimePoint::duration kept{};  ///< how long it is remembered
        TimePoint until{};
    };

    /// A tenant occurs once, and goes to the end with the end of its turn: it keeps its place among
    /// the others although its next claim comes later.
    std::list<Turn> turns_;
};

}  // namespace hearth::controller
