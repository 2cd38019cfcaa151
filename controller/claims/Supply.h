#pragma once

#include "controller/claims/ClaimQueue.h"
#include "controller/queue/CircuitBreaker.h"
#include "controller/queue/WorkQueue.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// What decides how many sandboxes are made: those that are there, the claims that wait for one,
/// how creating them went, and the work that makes them. All of it outlives whoever holds this.
struct Supply {
    pool::WarmPool& warm;
    ClaimQueue& claims;
    CircuitBreaker& breaker;
    WorkQueue& work;
};

}  // namespace hearth::controller
