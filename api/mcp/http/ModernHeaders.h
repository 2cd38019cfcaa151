#pragma once

#include <optional>
#include <string>

#include "api/http/Handler.h"
#include "api/mcp/protocol/JsonRpc.h"
#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {

/// Returns how the headers differ from the body, or nullopt. Since 2026-07-28 they repeat parts of
/// the body so that proxies need not read it (Mcp-Method, Mcp-Name, and Mcp-Param-* of parameters
/// that a tool's schema marks with x-mcp-header).
std::optional<std::string> headerMismatch(const api::Request& request, const Message& message,
                                          const Toolbox& tools);

/// Returns a header's value as text: a literal, or "=?base64?…?=". nullopt for bad base64.
std::optional<std::string> decodedHeader(std::string_view value);

}  // namespace hearth::mcp
