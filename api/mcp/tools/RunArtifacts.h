#pragma once

#include <string>

#include "api/mcp/tools/Content.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// Adds the files that a run made: small images as pictures, every file as a line with its link.
/// `origin` ("http://host") goes before the links. The view's texts are untrusted and stay text.
void addArtifacts(ToolResult& result, const controller::Services& services,
                  const controller::ExecutionView& view, const std::string& origin);

}  // namespace hearth::mcp
