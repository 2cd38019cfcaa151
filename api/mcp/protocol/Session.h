#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/protocol/JsonRpc.h"
#include "api/mcp/protocol/SessionRevocations.h"
#include "base/Clock.h"

namespace hearth::mcp {

/// The facts that a session id carries.
struct SessionFacts {
    std::string_view version;    ///< negotiated
    Json client_capabilities{};  ///< an object: elicitation, sampling, roots, each {} if declared
    WallTime expiry{};           ///< of the id
};

/// Makes and checks session ids that describe themselves: layout version, protocol version,
/// capabilities of the client, time of issue and random bits, signed with the server's key and
/// bound to an owner (a text that differs for each principal). Any server with the same key accepts
/// them, so clients survive restarts. Thread-safe.
class SessionIds {
public:
    /// `revocations` must outlive it.
    SessionIds(std::string_view secret_key, SessionRevocations& revocations, const Clock& clock);

    /// A new id for a legacy protocol version, visible ASCII.
    std::string issue(std::string_view owner, std::string_view protocol_version,
                      const Json& client_capabilities = Json::object());
    /// The facts of a good id; nullopt if it is malformed, another owner's, older than kMaxAge or
    /// ended.
    std::optional<SessionFacts> check(std::string_view id, std::string_view owner) const;
    /// Ends a session that check() accepts, as SessionRevocations::add().
    void revoke(const Revocation& session) { revocations_.add(session); }

    static constexpr std::chrono::hours kMaxAge{24 * 90};

private:
    std::string sign(std::string_view body, std::string_view owner) const;

    const std::string key_;
    SessionRevocations& revocations_;
    const Clock& clock_;
};

}  // namespace hearth::mcp
