#pragma once

#include <variant>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

// The steps before McpServer gets an HTTP request, for every transport: caller, rate, body.

/// Returns the message of a POST, or the refusal if it is not JSON of at most `max_bytes`.
std::variant<Json, api::Response> postedJson(api::Request& request, std::size_t max_bytes);
/// Returns the caller; a call is charged to its tenant's rate. Denials (401, 429) are recorded
/// here, tool calls by McpServer. Throws Error(Unauthorized, Forbidden, RateLimited).
enum class Counts { Call, Nothing };
controller::Principal admitted(const McpContext& context, api::Request& request, Counts counts);
/// Charges the other messages of a batch; admitted() has charged the first.
void countFurther(const McpContext& context, api::Request& request,
                  const controller::Principal& who, std::size_t messages);
/// Calls McpServer::handle() and applies a session's message to its streams. A tool call holds one
/// of its tenant's places until it is answered, even if the connection ends before. Without a free
/// place it is refused and not begun. A call in the reply has run until it waits.
McpServer::Reply handled(McpContext& context, McpServer& server, const Caller& caller,
                         const Message& message);
/// Carries the call of a session (empty: a modern one) on `sink`.
void followCall(McpContext& context, ToolCall call, const std::shared_ptr<MessageSink>& sink,
                const std::stop_token& stop, const std::string& session);
/// Returns the caller of an HTTP request, without the parts that era and session add.
Caller callerOf(const api::Request& request, const controller::Principal& who);

}  // namespace hearth::mcp
