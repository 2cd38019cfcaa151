#pragma once

#include <variant>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

// The way of an HTTP request into Server, for every transport: who asks, how often, with what.

/// What a POST carries, or the refusal of what is no JSON of at most `max_bytes`.
std::variant<Json, api::Response> postedJson(api::Request& request, std::size_t max_bytes);
/// Who asks, and within its rate if this is a call of it. A denial is recorded (401, 429); what a
/// tool call does is recorded by Server. Throws Error(Unauthorized, Forbidden, RateLimited).
enum class Counts { Call, Nothing };
controller::Principal admitted(const McpContext& hub, api::Request& request, Counts counts);
/// Counts the other messages of a batch, as admitted() has counted the first.
void countFurther(const McpContext& hub, api::Request& request, const controller::Principal& who,
                  std::size_t messages);
/// McpServer::handle(), with a tool call in one of the places that its tenant has for them: until
/// it is answered, whatever becomes of the connection. Without one it is refused and not begun.
McpServer::Reply handled(const McpContext& hub, McpServer& server, const Caller& caller,
                         const Message& message);
/// Who sends an HTTP request, without what its era or session adds.
Caller callerOf(const api::Request& request, const controller::Principal& who);

}  // namespace hearth::mcp
