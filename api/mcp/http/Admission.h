#pragma once

#include <variant>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

// How an HTTP request gets to Server, for every transport: authentication, rate, body.

/// The message of a POST, or the refusal if it is not JSON of at most `max_bytes`.
std::variant<Json, api::Response> postedJson(api::Request& request, std::size_t max_bytes);
/// The caller, charged to its rate if this is a call. Denials are recorded here (401, 429); Server
/// records what a tool call does. Throws Error(Unauthorized, Forbidden, RateLimited).
enum class Counts { Call, Nothing };
controller::Principal admitted(const McpContext& hub, api::Request& request, Counts counts);
/// Counts the other messages of a batch, as admitted() has counted the first.
void countFurther(const McpContext& hub, api::Request& request, const controller::Principal& who,
                  std::size_t messages);
/// McpServer::handle(), with a session's message applied to its streams and a tool call in one of
/// the places that its tenant has for them: until it is answered, whatever becomes of the
/// connection. Without one it is refused and not begun.
McpServer::Reply handled(McpContext& hub, McpServer& server, const Caller& caller,
                         const Message& message);
/// The caller of an HTTP request, without the parts that era and session add.
Caller callerOf(const api::Request& request, const controller::Principal& who);

}  // namespace hearth::mcp
