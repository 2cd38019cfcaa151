#include "api/cli/Sse.h"

#include "base/Error.h"

namespace hearth::cli {
namespace {
constexpr std::size_t kMaxEvent = 64U << 20U;
}

bool SseReader::feed(std::string_view piece) {
    buffer_.append(piece);
    std::size_t start = 0;
    bool more = true;
    while (more) {
        const std::size_t end = buffer_.find('\n', start);
        if (end == std::string::npos) break;
        std::string_view text = std::string_view(buffer_).substr(start, end - start);
        if (text.ends_with('\r')) text.remove_suffix(1);
        start = end + 1;
        more = line(text);
    }
    buffer_.erase(0, start);
    if (buffer_.size() + data_.size() > kMaxEvent) {
        throw Error(ErrorCode::Internal, "the server sent an event without an end");
    }
    return more;
}

bool SseReader::line(std::string_view text) {
    if (text.empty()) {
        const bool complete = has_data_;
        const SseEvent event{id_, type_.empty() ? "message" : type_, std::move(data_)};
        type_.clear();
        data_.clear();
        has_data_ = false;
        return !complete || on_event_(event);
    }
    const std::size_t colon = text.find(':');
    if (colon == 0) return true;
    const std::string_view field = text.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "data") {
        if (has_data_) data_ += '\n';
        data_ += value;
        has_data_ = true;
    } else if (field == "event") {
        type_ = value;
    } else if (field == "id") {
        id_ = value;
    }
    return true;
}

}  // namespace hearth::cli
