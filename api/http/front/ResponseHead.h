#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "base/Clock.h"

namespace hearth::api {

/// The Date header, made once a second. Not thread-safe: each answering thread has its own.
class DateText {
public:
    const std::string& at(WallTime now);

private:
    std::int64_t second_ = -1;
    std::string text_;
};

/// The headers that the front adds to a handler's.
struct Framing {
    std::string_view request_id;
    std::string_view date;
    std::optional<std::uint64_t> length;  ///< Content-Length
    bool chunked = false;
    bool keep_alive = true;
    bool http11 = true;
};

/// Throws std::invalid_argument if the status is out of range, or a header's name is no token, its
/// value holds a control character, or the front itself sets that header.
void checkResponse(const Response& response);

/// Returns the head of an answer that has been checked.
std::string renderHead(const Response& response, const Framing& framing);

/// True for a status that never has a body.
bool bodiless(int status) noexcept;

/// "1f\r\n": the line before a chunk.
std::string chunkLine(std::size_t size);

}  // namespace hearth::api
