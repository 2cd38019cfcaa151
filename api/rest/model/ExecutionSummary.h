#pragma once

#include <string>

#include "api/rest/schema/Schema.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// What a list tells of an execution: all but its output and results, and how large these are.
/// A client that lists wants to know what ran; some ten MiB each would drown that.
Json executionSummaryJson(const controller::ExecutionView& view, const std::string& origin);
/// With output and results, where the request asks for them.
Schema executionSummarySchema();

}  // namespace hearth::rest
