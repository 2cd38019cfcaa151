#pragma once

#include "api/auth/Authenticator.h"
#include "api/auth/ProtectedResource.h"
#include "api/auth/RateLimits.h"
#include "api/auth/WorkerShares.h"
#include "api/auth/oidc/Issuers.h"
#include "api/config/ServeConfig.h"
#include "api/http/front/Front.h"
#include "api/http/front/OperationsServer.h"
#include "api/serve/Endpoints.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/SandboxHost.h"
#include "api/serve/ServerReadiness.h"
#include "api/serve/ServerState.h"
#include "api/serve/StartupGate.h"
#include "controller/ControlPlane.h"
#include "controller/Services.h"
#include "metrics/AuditLog.h"

namespace hearth::program {

/// Everything that clients and operators reach: who they are, the endpoints, both addresses. The
/// references must outlive it.
struct ApiServer {
    ApiServer(const cli::ServeConfig& config, const PrivilegedSetup& setup, ServerState& state,
              SandboxHost& host, controller::ControlPlane& plane, const SignalThread& signals,
              const Reports& reports);

    metrics::AuditLog audit;
    controller::Services services;
    auth::Issuers issuers;
    auth::ProtectedResource resource;
    auth::Authenticator authenticator;
    auth::RateLimits rate_limits;
    auth::WorkerShares worker_shares;
    Endpoints endpoints;
    StartupGate gate;
    ServerReadiness readiness;
    api::OperationsServer operations;
    api::AccessLog access;
    api::Front front;
};

}  // namespace hearth::program
