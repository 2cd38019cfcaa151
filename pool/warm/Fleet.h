#pragma once

#include "pool/runtime/SandboxRuntime.h"
#include "pool/warm/ClaimMarks.h"
#include "pool/warm/WarmPool.h"

namespace hearth::pool {

/// All sandboxes of an instance: those that the runtime runs, the pools' view of them, and the
/// marks of claimed ones. All of it outlives this struct's holders.
struct Fleet {
    SandboxRuntime& runtime;
    WarmPool& warm;
    ClaimMarks& marks;
};

}  // namespace hearth::pool
