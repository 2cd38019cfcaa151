#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "base/Json.h"

namespace hearth::rest {

/// Formats one server-sent event. `data` is JSON on one line, so no line break can end it early.
std::string sseEvent(std::string_view name, std::uint64_t id, const Json& data);
/// The event's beginning: JSON on one line and an empty line must follow.
std::string sseHead(std::string_view name, std::uint64_t id);

/// True if the client's Accept header asks for text/event-stream.
bool wantsEventStream(const api::Request& request);

/// The position to resume after: the header Last-Event-ID, else the query parameter `since`;
/// nullopt with neither. Throws Error(InvalidArgument) for anything but a decimal number.
std::optional<std::uint64_t> lastEventId(const api::Request& request);

/// 200 text/event-stream with a comment after 15 s of silence.
api::Response sseResponse(api::StreamStarter starter);

/// The number of bytes at the end of `bytes` that begin an incomplete UTF-8 sequence: 0 to 3.
std::size_t incompleteTail(std::string_view bytes);

}  // namespace hearth::rest
