#pragma once

#include <functional>
#include <memory>

#include "api/http/Handler.h"
#include "controller/Executions.h"

namespace hearth::rest {

/// The answer that `make` gives once the execution has finished or `until` has come. The worker
/// waits for a moment, in which most executions end; a longer one is waited for without it.
api::Response whenFinished(const Clock& clock,
                           const std::shared_ptr<controller::Execution>& execution, TimePoint until,
                           const std::function<api::Response()>& make);

}  // namespace hearth::rest
