#pragma once

#include "controller/claims/ClaimQueue.h"
#include "controller/forecast/Forecasts.h"
#include "controller/gpus/GpuLedger.h"
#include "controller/queue/CircuitBreaker.h"
#include "controller/queue/WorkQueue.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Everything that decides how many sandboxes are made: existing ones, waiting claims, recent
/// failures, forecasts, free GPUs, and the work that makes them. All of it outlives this struct's
/// holders.
struct Supply {
    pool::WarmPool& warm;
    ClaimQueue& line;
    CircuitBreaker& breaker;
    WorkQueue& work;
    Forecasts& forecasts;
    GpuLedger& gpus;
};

}  // namespace hearth::controller
