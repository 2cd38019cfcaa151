#pragma once

#include <string>

#include "api/auth/Authenticator.h"
#include "api/http/Handler.h"
#include "api/http/Routes.h"
#include "api/rest/gate/Gate.h"
#include "api/rest/gate/Operation.h"
#include "api/rest/streams/ClaimStreams.h"
#include "api/rest/streams/StreamedJson.h"
#include "controller/Services.h"

namespace hearth::rest {

/// The REST surface: `/v1/…`, `/openapi.json`, `/docs` and `/`. Router, validation and document
/// come from one table of operations. Thread-safe. `services` and `authenticator` must outlive it,
/// and the services must also outlive the streams that it has begun; it must outlive the front.
class RestHandler final : public api::Handler {
public:
    RestHandler(const controller::Services& services, const auth::Authenticator& authenticator,
                const auth::WorkerShares& shares, const auth::RateLimits& limits);

    api::Response handle(api::Request& request) override;

    const Operations& operations() const { return operations_; }
    /// The body of /openapi.json. It changes when the first token is made.
    const std::string& openApi() const {
        return authenticator_.needsToken() ? open_api_with_tokens_ : open_api_;
    }

private:
    const auth::Authenticator& authenticator_;
    Gate gate_;
    StreamedJson answers_;
    ClaimStreams claims_;
    Operations operations_;  ///< before router_, whose handlers point into it
    std::string open_api_;
    std::string open_api_with_tokens_;
    std::string docs_;
    api::Router router_;
};

}  // namespace hearth::rest
