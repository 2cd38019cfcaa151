#pragma once

#include <string>
#include <string_view>

#include "api/auth/Authenticator.h"
#include "api/auth/RateLimits.h"
#include "api/auth/WorkerShares.h"
#include "api/rest/gate/IdempotencyCache.h"
#include "api/rest/gate/Operation.h"
#include "controller/Services.h"

namespace hearth::rest {

/// Runs before each operation's handler: authenticates, checks the role, and parses and validates
/// parameters and body as the operation declares. Writes changes and denials to the audit log.
/// Thread-safe.
///
/// Errors: Unauthenticated, Forbidden, RateLimited (the tenant's share of workers, or its requests
/// per second), InvalidArgument (with a pointer for each fault; "?limit" points to a query
/// parameter), Unsupported, PayloadTooLarge.
class Gate {
public:
    /// All arguments must outlive it.
    Gate(const controller::Services& services, const auth::Authenticator& authenticator,
         const auth::WorkerShares& shares, const auth::RateLimits& limits)
        : services_(services),
          authenticator_(authenticator),
          shares_(shares),
          limits_(limits),
          replays_(services.clock) {}

    api::Response pass(const Operation& operation, api::Request& request,
                       const api::RouteParams& path);

private:
    /// Handles a request whose caller was admitted.
    api::Response handle(const Operation& operation, api::Request& request,
                         const api::RouteParams& path, const controller::Principal& who);
    /// Checks the bearer of a token for one workspace. Throws Error(Forbidden).
    void requireWithin(const api::RouteParams& path, const controller::Principal& who) const;
    /// The audit log's entry for this request, written when its answer is known; null if none is
    /// kept. Its author is filled in when known.
    std::shared_ptr<metrics::AuditEntry> audit(const Operation& operation, api::Request& request,
                                               const api::RouteParams& path) const;

    const controller::Services& services_;
    const auth::Authenticator& authenticator_;
    const auth::WorkerShares& shares_;
    const auth::RateLimits& limits_;
    IdempotencyCache replays_;
};

/// Returns the fingerprint (controller/contract/Fingerprint.h) of the route and the canonical body
/// (keys sorted).
std::string requestFingerprint(std::string_view secret_key, const std::string& method,
                               const std::string& path, const Json& body);

}  // namespace hearth::rest
