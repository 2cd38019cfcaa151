#pragma once

#include "pool/runtime/SandboxRuntime.h"
#include "pool/warm/ClaimMarks.h"
#include "pool/warm/WarmPool.h"

namespace hearth::pool {

/// All sandboxes of an instance: the runtime that has them, the pools' view of them, and the marks
/// of claimed ones. All of it outlives the holders of this struct.
struct Fleet {
    SandboxRuntime& runtime;
    WarmPool& warm;
    ClaimMarks& marks;
};

}  // namespace hearth::pool
