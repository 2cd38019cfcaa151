#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "base/Json.h"

namespace hearth::rest {

/// One server-sent event. `data` is JSON on one line, so no line break can end the event early.
std::string sseEvent(std::string_view name, std::uint64_t id, const Json& data);
/// Its beginning: JSON on one line and an empty line are still to come.
std::string sseHead(std::string_view name, std::uint64_t id);

/// Whether the client asks for text/event-stream by its Accept header.
bool wantsEventStream(const api::Request& request);

/// The position to resume after: the header Last-Event-ID, else the query parameter `since`;
/// nullopt with neither. Throws Error(InvalidArgument) for anything but a decimal number.
std::optional<std::uint64_t> lastEventId(const api::Request& request);

/// 200 text/event-stream with a comment after 15 s of silence.
api::Response sseResponse(api::StreamStarter starter);

/// How many bytes at the end of `bytes` begin a UTF-8 sequence that is not yet complete: 0 to 3.
std::size_t incompleteTail(std::string_view bytes);

}  // namespace hearth::rest
