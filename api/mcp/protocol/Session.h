#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// What a session id says of its session.
struct SessionFacts {
    std::string_view version;  ///< negotiated
    Json
        client_capabilities{};  ///< an object: elicitation, sampling, roots, each {} where declared
};

/// Makes and checks session ids that describe themselves: layout version, protocol version, what
/// the client can do, time of issue and random bits, signed with the server's key and bound to an
/// owner: a text that tells principals apart. Any server with the same key accepts them, so clients
/// live on across restarts. Thread-safe.
///
/// Only ended sessions are remembered: the last kMaxRevoked of them, in memory. After a restart an
/// ended session would be accepted again; it carries no right of its own, so nothing is gained.
class SessionIds {
public:
    SessionIds(std::string_view secret_key, const Clock& clock);

    /// A new id for a legacy protocol version, visible ASCII.
    std::string issue(std::string_view owner, std::string_view protocol_version,
                      const Json& client_capabilities = Json::object());
    /// What a good id says; nullopt for one that is malformed, another owner's,
    /// older than kMaxAge or ended.
    std::optional<SessionFacts> check(std::string_view id, std::string_view owner) const;
    /// Ends a session that check() accepts.
    void revoke(const std::string& id);

    static constexpr std::size_t kMaxRevoked = 10'000;
    static constexpr std::chrono::hours kMaxAge{24 * 90};

private:
    std::string sign(std::string_view body, std::string_view owner) const;

    const std::string key_;
    const Clock& clock_;
    mutable Mutex mutex_;
    std::set<std::string, std::less<>> revoked_ HEARTH_GUARDED_BY(mutex_);
    std::deque<std::string> order_ HEARTH_GUARDED_BY(mutex_);  ///< of revoked_, oldest first
};

}  // namespace hearth::mcp
