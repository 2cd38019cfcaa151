#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/Clock.h"
#include "base/task/Blocking.h"
#include "controller/Services.h"
#include "metrics/LogTail.h"
#include "tests/support/FakeContexts.h"
#include "tests/support/FakeEvents.h"
#include "tests/support/FakeExecutions.h"
#include "tests/support/FakeGpus.h"
#include "tests/support/FakePools.h"
#include "tests/support/FakeQuotas.h"
#include "tests/support/FakeStock.h"
#include "tests/support/FakeTimelines.h"
#include "tests/support/FakeTokens.h"
#include "tests/support/FakeUsage.h"
#include "tests/support/FakeWorkspaces.h"

namespace hearth::test {

/// All services, faked, with a clock that runs or that the test moves.
struct FakeServices {
    enum class Time { Real, Manual };
    explicit FakeServices(Time which = Time::Real)
        : clock(which == Time::Real ? static_cast<const Clock&>(real) : manual) {}

    /// A claim that waits in the thread that calls.
    controller::WorkspaceView open(const controller::Principal& who,
                                   const controller::WorkspaceRequest& request) {
        return resultOf(workspaces.create(who, request), clock);
    }

    SystemClock real;
    ManualClock manual;
    const Clock& clock;
    FakePools pools;
    FakeStock stock;
    FakeWorkspaces workspaces{stock};
    FakeExecutions executions{stock};
    FakeContexts contexts;
    FakeEvents events;
    FakeTokens tokens;
    FakeQuotas quotas;
    FakeGpus gpus;
    FakeTimelines timelines;
    FakeUsage usage;
    metrics::Metrics metrics;
    metrics::LogTail tail;
    metrics::Log log{-1, metrics::LogLevel::Info, metrics::LogFormat::Logfmt, &tail};
    metrics::Tracer tracer;
    std::string secret = std::string(32, 'k');
    /// The capabilities of the server, without the additions of each door.
    Json capabilities{{"runtime", "oci"},
                      {"images", {{{"name", "python"}, {"languages", {"python", "sh"}}}}}};
    controller::PackageService packages{
        executions, workspaces, {egress::IndexKind::Pypi, egress::IndexKind::Npm}};
    controller::Services services{pools,    workspaces, executions, contexts,
                                  packages, events,     tokens,     quotas,
                                  gpus,     timelines,  usage,      metrics,
                                  log,      clock,      tracer,     [this] { return capabilities; },
                                  secret};
};

}  // namespace hearth::test
