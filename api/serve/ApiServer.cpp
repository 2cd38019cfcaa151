#include "api/serve/ApiServer.h"

#include <utility>

#include "api/serve/Capabilities.h"
#include "api/serve/PartOptions.h"

namespace hearth::program {
namespace {

controller::Services servicesOf(const cli::ServeConfig& config, ServerState& state,
                                SandboxHost& host, controller::ControlPlane& plane,
                                metrics::AuditLog& audit) {
    const controller::Foundation& foundation = plane.foundation;
    return {plane.pools,
            plane.workspaces,
            plane.executions,
            plane.contexts,
            plane.packages,
            plane.events,
            state.tokens,
            plane.quota_service,
            plane.gpu_service,
            plane.timelines,
            plane.usage_reports,
            foundation.metrics,
            foundation.log,
            foundation.clock,
            foundation.tracer,
            [&config, &host, &plane] {
                return capabilities(config, host.facts(), plane.specs, plane.warm, plane.gateway,
                                    plane.gpu_service);
            },
            state.secret_key,
            [&plane](const controller::SignedLink& link) {
                controller::ArtifactStore::Kept kept =
                    plane.artifact_store.open({link.tenant, link.workspace, link.artifact});
                return std::pair(std::move(kept.fd), kept.size);
            },
            &audit};
}

}  // namespace

ApiServer::ApiServer(const cli::ServeConfig& config, const PrivilegedSetup& setup,
                     ServerState& state, SandboxHost& host, controller::ControlPlane& plane,
                     const SignalThread& signals, const Reports& reports)
    : audit(*config.audit_log, reports.clock, reports.log, reports.metrics),
      services(servicesOf(config, state, host, plane, audit)),
      issuers(setup.issuers, reports.clock, reports.log),
      resource(*config.public_url, issuers.names()),
      authenticator(state.tokens, state.secret_key, &issuers, &resource),
      rate_limits(*config.requests_per_second, *config.request_burst, reports.clock),
      worker_shares(auth::WorkerShares::boundsOf(*config.workers)),
      endpoints(config, services, authenticator, resource, worker_shares, rate_limits,
                state.revocations),
      gate(endpoints),
      readiness(plane, gate, signals),
      operations(*config.ops_listen, reports.metrics, reports.log, reports.clock,
                 [this] { return readiness.look(); }),
      access(*config.access_log, reports.clock, reports.log, reports.metrics),
      front(frontOptions(config, reports.tracer, access), gate, reports.metrics, reports.log,
            reports.clock) {
    if (const auto& catalog = setup.replaced.catalog) {
        mcp::McpEndpoints& mcp = endpoints.mcp();
        mcp.mount("", catalog(services, mcp.notifier()));
    }
}

}  // namespace hearth::program
