#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/simulation/PoolModel.h"

namespace hearth::controller {

/// The three sizing methods on one trace.
struct Comparison {
    std::string trace;
    PolicyResult predictive;
    /// The smallest fixed size that misses no larger share of claims than `predictive`, or the
    /// pool's max if none does.
    std::uint32_t static_size = 0;
    PolicyResult best_static;
    PolicyResult clairvoyant;

    /// Predictive's idle time as a fraction of Static's.
    double ofStatic() const;
};

/// Starts each sandbox as late as possible, for a trace that is known in advance, without a miss:
/// from the last claim to the first, each start gets the slot that is free longest. If all starts
/// take the same time, no schedule without a miss has less idle time. If they differ, this
/// schedule can be reached, and its cost bounds the schedules that give claims their sandboxes in
/// order.
PolicyResult clairvoyant(const PoolSpec& spec, const StartModel& starts, const Trace& trace);

Comparison compare(const PoolSpec& spec, const StartModel& starts, const Trace& trace);

}  // namespace hearth::controller
