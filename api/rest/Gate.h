#pragma once

#include "api/auth/Authenticator.h"
#include "api/auth/WorkerShares.h"
#include "api/rest/Operation.h"

namespace hearth::rest {

/// The largest JSON body.
inline constexpr std::size_t kLargestJson = 4U << 20U;

/// What stands before each operation's handler: authenticates, checks the role, parses and
/// validates parameters and body as the operation declares. Thread-safe.
///
/// Errors: Unauthenticated, Forbidden, RateLimited (the tenant holds its share of the workers),
/// InvalidArgument (with a pointer for each fault; "?limit" is the pointer of a query parameter),
/// Unsupported, PayloadTooLarge.
class Gate {
public:
    Gate(const auth::Authenticator& authenticator, const auth::WorkerShares& shares)
        : authenticator_(authenticator), shares_(shares) {}

    api::Response pass(const Operation& operation, api::Request& request,
                       const api::RouteParams& path) const;

private:
    const auth::Authenticator& authenticator_;
    const auth::WorkerShares& shares_;
};

/// SHA-256 of the route and the canonical body (keys sorted), in hex: what makes two requests with
/// one Idempotency-Key the same request.
std::string requestFingerprint(const std::string& method, const std::string& path,
                               const Json& body);

}  // namespace hearth::rest
