#pragma once

#include <functional>
#include <memory>

#include "api/http/Handler.h"
#include "controller/contract/ClaimPatience.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// Answers with `make` once the execution has finished or `until` has come. The worker waits for a
/// moment, in which most executions end; a longer wait holds no worker.
api::Response whenFinished(const Clock& clock,
                           const std::shared_ptr<controller::Execution>& execution, TimePoint until,
                           const std::function<api::Response()>& make);

/// Answers with `claim`, which is called with the patience to use, and called again if it had to
/// wait. It waits in line without a worker, and a client that hangs up leaves the line. `claim`
/// owns everything it uses except the request.
api::Response whenClaimed(
    api::Request& request,
    const std::function<api::Response(const controller::ClaimPatience&)>& claim);

}  // namespace hearth::rest
