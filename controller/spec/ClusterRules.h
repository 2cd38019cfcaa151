#pragma once

#include <string>

#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// Refuses settings that a pool may have on one machine but not in a cluster. `own_claim`: the
/// claim of the volume that the servers share; empty: none. Throws Error(InvalidSpec) with a field
/// for each fault.
void requireFitsCluster(const PoolSpec& spec, const std::string& own_claim);

}  // namespace hearth::controller
