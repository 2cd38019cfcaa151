#pragma once

#include <string>

#include "base/trace/TraceContext.h"

namespace hearth::controller {

enum class Role {
    User,      ///< its own tenant
    Operator,  ///< pools, sandboxes; may see id, pool, age and reason of others' workspaces, and
               ///< end them
    Admin,     ///< everything
};

/// The caller. Made by api/auth for each request; every service call takes one.
struct Principal {
    std::string tenant = "default";
    Role role = Role::User;
    std::string token_id;  ///< for the log; empty for loopback without tokens
    TraceContext trace{};  ///< its request, as a span; none where no request asks
    /// The only workspace that it may use; empty: all of its tenant's. Only the REST gate lets such
    /// a caller in, and only to calls about that workspace.
    std::string workspace{};

    bool atLeast(Role least) const { return static_cast<int>(role) >= static_cast<int>(least); }
};

}  // namespace hearth::controller
