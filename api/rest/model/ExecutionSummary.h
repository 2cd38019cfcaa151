#pragma once

#include <string>

#include "api/rest/schema/Schema.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// An execution as a list shows it: all except its output and results, but with their sizes. A
/// listing client wants to see which code ran; some ten MiB per execution would bury that.
Json executionSummaryJson(const controller::ExecutionView& view, const std::string& origin);
/// With output and results if the request asks for them.
Schema executionSummarySchema();

}  // namespace hearth::rest
