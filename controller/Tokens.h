#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/Principal.h"

namespace hearth::controller {

struct TokenView {
    std::string id;  ///< "tk_…"
    std::string name;
    std::string tenant;
    Role role = Role::User;
    std::string created_at;
    std::optional<std::string> expires_at;
    std::string source;  ///< "config", "store"
};

/// Opaque bearer tokens, kept as SHA-256 and shown once. Thread-safe; authenticate() does no I/O.
class Tokens {
public:
    virtual ~Tokens() = default;
    /// Whether any token exists: without one only loopback is served, as admin of `default`.
    virtual bool configured() const = 0;
    /// nullopt for an unknown or expired token; the comparison takes constant time.
    virtual std::optional<Principal> authenticate(std::string_view token) const = 0;
    /// Needs Admin. Gives the token itself, which cannot be had again.
    virtual std::pair<TokenView, std::string> create(const Principal& who, const std::string& name,
                                                     const std::string& tenant, Role role,
                                                     std::optional<std::int64_t> ttl_seconds) = 0;
    virtual std::vector<TokenView> list(const Principal& who) const = 0;
    /// Error(NotFound); Error(Conflict) for one from the configuration.
    virtual void remove(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
