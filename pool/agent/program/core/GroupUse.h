#pragma once

#include <string>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// Returns the kernel's counts of the agent's own control group, in the form of the answer to
/// `usage`: in a Pod that is the whole container. `place` holds its files: in v1 one folder for
/// each controller. Null unless processor time, memory and kills can all be read.
JsonValue groupUse(const std::string& place);

}  // namespace hearth::agent
