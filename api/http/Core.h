#pragma once

#include <atomic>
#include <stop_token>

#include "api/http/Front.h"
#include "api/http/HostRules.h"
#include "api/http/StreamPlaces.h"

namespace hearth::api {

/// What the parts of one front share.
struct Core {
    const FrontOptions& options;
    Handler& handler;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    HostRules rules;
    std::stop_source stop{};
    std::atomic<bool> stopping{false};
    std::atomic<std::size_t> connections{0};
    StreamPlaces streams{options.streams, options.streams_of_tenant};
};

}  // namespace hearth::api
