#pragma once

#include <functional>
#include <optional>

#include "api/http/Handler.h"
#include "base/task/Task.h"

namespace hearth::api {

/// Answers a request with what the task returns. It runs in this worker until it waits; no worker
/// is held while it does. A client that hangs up meanwhile destroys the task. When the server
/// stops, or too many requests wait, `early` answers instead of a task that still waits; without
/// such an answer the request is refused.
Response answerOf(const Request& request, Task<Response> task,
                  std::function<std::optional<Response>()> early = {});

}  // namespace hearth::api
