#pragma once

#include <string>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// The kernel's counts of our own control group, as the answer to `usage` has it: in a Pod that
/// is the whole container. `place` is where the group's files are, in either version: of v1 one
/// folder for each controller. Null unless processor time, memory and kills can all be read.
JsonValue groupUse(const std::string& place);

}  // namespace hearth::agent
