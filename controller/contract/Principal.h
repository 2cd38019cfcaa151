#pragma once

#include <string>

namespace hearth::controller {

enum class Role {
    User,      ///< its own tenant
    Operator,  ///< pools, sandboxes; of others' workspaces id, pool, age, reason, and their end
    Admin,     ///< everything
};

/// Who asks. Made by api/auth for each request; every service call takes one.
struct Principal {
    std::string tenant = "default";
    Role role = Role::User;
    std::string token_id;  ///< for the log; empty for loopback without tokens

    bool atLeast(Role least) const { return static_cast<int>(role) >= static_cast<int>(least); }
};

}  // namespace hearth::controller
