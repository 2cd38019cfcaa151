#pragma once

#include <string>
#include <string_view>

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
    /// `secret_key` keys the fingerprints of requests.
    Gate(const auth::Authenticator& authenticator, const auth::WorkerShares& shares,
         const std::string& secret_key)
        : authenticator_(authenticator), shares_(shares), secret_key_(secret_key) {}

    api::Response pass(const Operation& operation, api::Request& request,
                       const api::RouteParams& path) const;

private:
    const auth::Authenticator& authenticator_;
    const auth::WorkerShares& shares_;
    const std::string& secret_key_;
};

/// The fingerprint (controller/Fingerprint.h) of the route and the canonical body (keys sorted).
std::string requestFingerprint(std::string_view secret_key, const std::string& method,
                               const std::string& path, const Json& body);

}  // namespace hearth::rest
