#pragma once

#include "base/Clock.h"
#include "controller/journal/Journal.h"
#include "controller/store/EventLog.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::controller {

/// The objects that parts of the controller report events to, and the clock that dates them. All of
/// them outlive the holder of this.
struct History {
    Journal& journal;
    EventLog& events;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    const metrics::Tracer& tracer;
};

}  // namespace hearth::controller
