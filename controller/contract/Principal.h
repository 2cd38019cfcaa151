#pragma once

#include <string>

#include "base/trace/TraceContext.h"

namespace hearth::controller {

enum class Role {
    User,      ///< its own tenant
    Operator,  ///< pools, sandboxes; sees id, pool, age and reason of other tenants' workspaces,
               ///< and may end them
    Admin,     ///< everything
};

/// The caller. Made by api/auth for each request; every service call takes one.
struct Principal {
    std::string tenant = "default";
    Role role = Role::User;
    std::string token_id;  ///< for the log; empty for a loopback caller without a token
    TraceContext trace{};  ///< the span of its request; none if no request asks
    /// The only workspace that it may use; empty: all of its tenant's. Only the REST gate accepts
    /// such a caller, and only for calls about that workspace.
    std::string workspace{};

    bool atLeast(Role least) const { return static_cast<int>(role) >= static_cast<int>(least); }
};

}  // namespace hearth::controller
