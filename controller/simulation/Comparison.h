#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/simulation/PoolModel.h"

namespace hearth::controller {

/// The three ways of sizing on one trace.
struct Comparison {
    std::string trace;
    PolicyResult predictive;
    /// The smallest fixed size that misses no larger share of claims than `predictive`, or the
    /// pool's max if none does.
    std::uint32_t static_size = 0;
    PolicyResult best_static;
    PolicyResult clairvoyant;

    /// Predictive's idle time, of Static's.
    double ofStatic() const;
};

/// Each sandbox as late as possible, for a trace that is known in advance and has no miss: starts
/// are put from the last claim to the first into the slot that is free longest. No schedule
/// without a miss has less idle time if all starts take the same time; if they differ, this is
/// one that can be reached, and its cost a bound for those that give claims their sandboxes in
/// order.
PolicyResult clairvoyant(const PoolSpec& spec, const StartModel& starts, const Trace& trace);

Comparison compare(const PoolSpec& spec, const StartModel& starts, const Trace& trace);

}  // namespace hearth::controller
