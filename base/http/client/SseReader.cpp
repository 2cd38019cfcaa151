#include "base/http/client/SseReader.h"

#include <utility>

#include "base/Error.h"

namespace hearth::http {
namespace {
constexpr std::size_t kMaxEvent = 64U << 20U;
}

bool SseReader::feed(std::string_view piece) {
    // Only the new bytes are searched: a long line comes in many pieces.
    for (std::size_t end = 0; (end = piece.find('\n')) != std::string_view::npos;) {
        rest_.append(piece.substr(0, end));
        piece.remove_prefix(end + 1);
        if (rest_.ends_with('\r')) rest_.pop_back();
        const bool more = line(rest_);
        rest_.clear();
        if (!more) return false;
    }
    rest_.append(piece);
    if (rest_.size() + event_.data.size() > kMaxEvent) {
        throw Error(ErrorCode::Internal, "the server sent an event without an end");
    }
    return true;
}

bool SseReader::line(std::string_view text) {
    if (text.empty()) {
        SseEvent event = std::exchange(event_, {event_.id, {}, {}});
        if (event.type.empty()) event.type = "message";
        return !std::exchange(has_data_, false) || on_event_(event);
    }
    const std::size_t colon = text.find(':');
    if (colon == 0) return true;
    const std::string_view field = text.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "data") {
        if (has_data_) event_.data += '\n';
        event_.data += value;
        has_data_ = true;
    } else if (field == "event") {
        event_.type = value;
    } else if (field == "id") {
        event_.id = value;
    }
    return true;
}

}  // namespace hearth::http
