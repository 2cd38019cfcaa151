#pragma once

#include "base/Error.h"
#include "controller/claims/Claimer.h"
#include "controller/contract/Principal.h"
#include "controller/store/History.h"

namespace hearth::controller {

/// Records a served claim as a span within its request, `parent`, with a span for each stage that
/// took time. Stages are placed in the order in which they happen, and end at the bind; waits that
/// the ledger adds up (a cold start's) are one span.
void recordClaim(const History& history, const Claimer::Claimed& claimed,
                 const TraceContext& parent);

/// Records a claim that got nothing, from `since` to now. `pool` empty: no pool was found.
void recordRefusedClaim(const History& history, const Principal& who, const std::string& pool,
                        TimePoint since, ErrorCode why);

}  // namespace hearth::controller
