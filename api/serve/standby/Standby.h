#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/config/ServeConfig.h"
#include "api/serve/process/SignalThread.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "base/Clock.h"
#include "controller/journal/SharedHistory.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::program {

/// Clock, metrics, log and tracer of the process, used while it stands by and while it serves.
struct Reports {
    const Clock& clock;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const metrics::Tracer& tracer;
};

/// Stands by until this replica leads. Meanwhile its address serves through the leading replica,
/// its probes are answered, and its database follows the history that the replicas share, if they
/// do. False: a signal came first. Both addresses are free when it returns.
bool standBy(const cli::ServeConfig& config, Leadership& leadership,
             controller::SharedHistory* shared, const Reports& reports, const SignalThread& signals,
             const std::function<void(const std::string& why)>& deposed);

/// Returns the history on the volume of --shared-volume, for the database in that file; or null.
/// Throws Error(InvalidArgument) if it cannot be opened.
std::unique_ptr<controller::SharedHistory> sharedHistory(const cli::ServeConfig& config,
                                                         const Leadership* leadership,
                                                         const std::string& data_file,
                                                         metrics::Log& log);

}  // namespace hearth::program
