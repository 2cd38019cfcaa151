#pragma once

#include "base/Clock.h"
#include "controller/journal/Journal.h"
#include "controller/store/EventLog.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::controller {

/// Where the parts of the controller write down what has happened, and the clock that dates it.
/// All of it outlives whoever holds this.
struct History {
    Journal& journal;
    EventLog& events;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    const metrics::Tracer& tracer;
};

}  // namespace hearth::controller
