#pragma once

#include "pool/runtime/SandboxRuntime.h"
#include "pool/warm/ClaimMarks.h"
#include "pool/warm/WarmPool.h"

namespace hearth::pool {

/// All sandboxes of an instance: what the runtime runs, what the pools know of it, and which of
/// them were claimed. All of it outlives whoever holds this.
struct Fleet {
    SandboxRuntime& runtime;
    WarmPool& warm;
    ClaimMarks& marks;
};

}  // namespace hearth::pool
