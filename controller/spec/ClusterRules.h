#pragma once

#include <string>

#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// Refuses what a pool of one machine may say and one of a cluster may not. `own_claim`: the claim
/// of the volume that the servers share; empty: none. Throws Error(InvalidSpec) with a field for
/// each fault.
void requireFitsCluster(const PoolSpec& spec, const std::string& own_claim);

}  // namespace hearth::controller
