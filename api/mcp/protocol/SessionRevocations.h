#pragma once

#include <string>
#include <string_view>

namespace hearth::mcp {

/// The MCP sessions that their clients have ended, by id. Thread-safe.
class SessionRevocations {
public:
    virtual ~SessionRevocations() = default;
    virtual bool contains(std::string_view session) const = 0;
    /// When it returns, the revocation outlives the server's kill. Throws Error(DiskFull) and
    /// Error(Unavailable); the session is then still valid.
    virtual void add(const std::string& session) = 0;
};

}  // namespace hearth::mcp
