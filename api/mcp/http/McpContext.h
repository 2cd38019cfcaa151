#pragma once

#include "api/auth/Authenticator.h"
#include "api/auth/RateLimits.h"
#include "api/auth/WorkerShares.h"
#include "api/mcp/http/ChangeNotifier.h"
#include "api/mcp/http/LogLevels.h"
#include "api/mcp/http/ReplayStreams.h"
#include "api/mcp/http/Talk.h"
#include "api/mcp/http/ToolCalls.h"
#include "api/mcp/protocol/Session.h"
#include "base/tenants/TenantPlaces.h"
#include "controller/Services.h"

namespace hearth::mcp {

struct McpOptions {
    /// How long a call may keep its worker thread (and a plain JSON answer) before it continues as
    /// an SSE stream.
    std::chrono::milliseconds inline_wait{1'000};
    std::size_t max_body = 4U << 20U;
    /// The most tool calls of one tenant that are not answered yet.
    std::size_t calls_of_tenant = 256;
};

/// The most calls that wait for a sandbox, in total and of one tenant (TenantPlaces).
inline constexpr std::size_t kMostWaiting = 256;
inline constexpr std::size_t kMostWaitingOfTenant = 64;

/// The state that the endpoints of one server share. All references must outlive it, and the front
/// must stop before it is destroyed.
struct McpContext {
    McpContext(const controller::Services& all, const auth::Authenticator& who,
               const auth::WorkerShares& workers, const auth::RateLimits& rates,
               SessionRevocations& revocations, McpOptions chosen = {})
        : services(all),
          authenticator(who),
          shares(workers),
          limits(rates),
          options(chosen),
          call_places(chosen.calls_of_tenant),
          sessions(all.secret_key, revocations, all.clock),
          replays(all.clock),
          notifier(all, log_levels),
          tool_calls(all.clock, all.log) {}

    const controller::Services& services;
    const auth::Authenticator& authenticator;
    const auth::WorkerShares& shares;
    const auth::RateLimits& limits;
    const McpOptions options;
    const auth::WorkerShares call_places;
    SessionIds sessions;
    ReplayStreams replays;
    LogLevels log_levels;
    ChangeNotifier notifier;
    TenantPlaces waiting{kMostWaiting, kMostWaitingOfTenant};
    Questions questions;
    ToolCalls tool_calls;  ///< last: its threads use the others
};

}  // namespace hearth::mcp
