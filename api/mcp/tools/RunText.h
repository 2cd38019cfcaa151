#pragma once

#include <string>

#include "api/mcp/tools/Content.h"
#include "controller/contract/Executions.h"

namespace hearth::mcp {

/// Returns the status of an execution on one line: "ok, exit 0, 3.1 ms; run_id ex_…".
std::string runStatusLine(const controller::ExecutionView& view);
/// Returns an execution as text for a model: status line, results, stdout, stderr; capped at
/// kTextCap, with the way to the rest. PNG and JPEG images follow the text, at most kImagesCap with
/// kPicturesCap bytes of base64 together; others are only counted.
ToolResult runResult(const controller::ExecutionView& view);
/// Returns a running or ended execution's output from `since` on (bytes of both channels), capped.
ToolResult runOutputFrom(const controller::Execution& execution, std::uint64_t since);

}  // namespace hearth::mcp
