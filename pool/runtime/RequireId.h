#pragma once

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// Throws Error(InvalidArgument) unless it is a sandbox's id: paths and names contain it.
inline void requireId(const SandboxId& id) {
    if (!isId(id, "sb_")) throw Error(ErrorCode::InvalidArgument, "not a sandbox id");
}

}  // namespace hearth::pool
