#include "base/http/client/LineReader.h"

#include "base/Error.h"

namespace hearth::http {

bool LineReader::feed(std::string_view piece) {
    // Only the new bytes are searched: a long line comes in many pieces.
    while (!piece.empty()) {
        const std::size_t end = piece.find('\n');
        const std::string_view part = piece.substr(0, end);
        if (rest_.size() + part.size() > most_) {
            throw Error(ErrorCode::PayloadTooLarge, "the server sent a line that is too long");
        }
        if (end == std::string_view::npos) {
            rest_.append(part);
            return true;
        }
        piece.remove_prefix(end + 1);
        const bool whole = rest_.empty();
        if (!whole) rest_.append(part);
        const bool more = on_line_(whole ? part : std::string_view(rest_));
        rest_.clear();
        if (!more) return false;
    }
    return true;
}

}  // namespace hearth::http
