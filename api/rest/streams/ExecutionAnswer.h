#pragma once

#include <functional>
#include <memory>

#include "api/http/Handler.h"
#include "base/task/Task.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// Makes the answer with `make` once the execution has finished or `until` has come. The worker
/// waits for a moment, in which most executions end; a longer wait holds no worker.
Task<api::Response> whenFinished(const Clock& clock,
                                 std::shared_ptr<controller::Execution> execution, TimePoint until,
                                 std::function<api::Response()> make);

}  // namespace hearth::rest
