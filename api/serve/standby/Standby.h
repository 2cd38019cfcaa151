#pragma once

#include <stop_token>

#include "api/config/ServeConfig.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "base/Clock.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::program {

/// Clock, metrics and log of the process, used while it stands by and while it serves.
struct Reports {
    const Clock& clock;
    metrics::Metrics& metrics;
    metrics::Log& log;
};

/// Stands by until this replica leads: its address serves through the replica that does, and its
/// probes are answered. False: the stop came first. Both addresses are free when it returns.
bool standBy(const cli::ServeConfig& config, Leadership& leadership, const Reports& reports,
             const std::stop_token& stop);

}  // namespace hearth::program
