#pragma once

#include <functional>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "controller/contract/Contexts.h"
#include "controller/contract/Events.h"
#include "controller/contract/Executions.h"
#include "controller/contract/Gpus.h"
#include "controller/contract/Pools.h"
#include "controller/contract/Quotas.h"
#include "controller/contract/Timeline.h"
#include "controller/contract/Tokens.h"
#include "controller/contract/Usage.h"
#include "controller/contract/Workspaces.h"
#include "controller/executions/SignedLink.h"
#include "controller/services/PackageService.h"
#include "metrics/AuditLog.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::controller {

/// The services below the protocol surfaces (REST, MCP): references to objects that the server
/// built. All outlive the surfaces.
struct Services {
    Pools& pools;
    Workspaces& workspaces;
    Executions& executions;
    Contexts& contexts;
    PackageService& packages;
    Events& events;
    Tokens& tokens;
    Quotas& quotas;
    Gpus& gpus;
    Timelines& timelines;
    UsageReports& usage;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    const metrics::Tracer& tracer;
    /// The document of GET /v1/capabilities: runtime, isolation in force, images, languages.
    std::function<Json()> capabilities;
    /// 32 random bytes kept in the data directory: signs links, cursors and session ids.
    const std::string& secret_key;
    /// Opens the kept copy that an artifact's link names, and gets its size. Throws Error(Gone).
    std::function<std::pair<Fd, std::uint64_t>(const SignedLink&)> open_artifact = {};
    /// Records changes and denied calls; null: no audit log.
    metrics::AuditLog* audit = nullptr;
};

}  // namespace hearth::controller
