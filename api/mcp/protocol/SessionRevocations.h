#pragma once

#include <string>
#include <string_view>

#include "base/Clock.h"

namespace hearth::mcp {

/// The end of a session before its id expires.
struct Revocation {
    std::string session;  ///< its id
    std::string tenant;
    WallTime expiry;  ///< of the id
};

/// The MCP sessions that their clients have ended, by id. Thread-safe.
class SessionRevocations {
public:
    virtual ~SessionRevocations() = default;
    virtual bool contains(std::string_view session) const = 0;
    /// When it returns, the revocation outlives the server's kill. Throws Error(DiskFull) and
    /// Error(Unavailable); the session is then still valid.
    virtual void add(const Revocation& revocation) = 0;
};

}  // namespace hearth::mcp
