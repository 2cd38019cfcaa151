#include "base/http/ByteRange.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/http/Url.h"

namespace hearth {
namespace {

/// Returns the number; the largest for any larger one.
std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || stop != end) return std::nullopt;
    if (error == std::errc::result_out_of_range) return std::numeric_limits<std::uint64_t>::max();
    return error == std::errc{} ? std::optional(value) : std::nullopt;
}

}  // namespace

ByteRange parseRange(std::string_view header, std::uint64_t size) {
    const ByteRange whole{ByteRange::Kind::Whole, 0, size};
    constexpr std::string_view kUnit = "bytes=";
    if (header.size() <= kUnit.size() || !equalsIgnoreCase(header.substr(0, kUnit.size()), kUnit)) {
        return whole;
    }
    const std::string_view range = trim(header.substr(kUnit.size()));
    const std::size_t dash = range.find('-');
    if (dash == std::string_view::npos || range.find(',') != std::string_view::npos) return whole;
    const std::string_view first_text = trim(range.substr(0, dash));
    const std::string_view last_text = trim(range.substr(dash + 1));
    const std::optional<std::uint64_t> first = number(first_text);
    const std::optional<std::uint64_t> last = number(last_text);

    if (first_text.empty()) {  // the last N bytes
        if (!last) return whole;
        const std::uint64_t length = std::min(*last, size);
        if (length == 0) return {ByteRange::Kind::Unsatisfiable, 0, 0};
        return {ByteRange::Kind::Part, size - length, length};
    }
    if (!first || (!last_text.empty() && !last) || (last && *last < *first)) return whole;
    if (*first >= size) return {ByteRange::Kind::Unsatisfiable, 0, 0};
    const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
    return {ByteRange::Kind::Part, *first, end - *first + 1};
}

bool etagMatches(std::string_view header, std::string_view etag) {
    while (!header.empty()) {
        const std::size_t comma = header.find(',');
        std::string_view tag = trim(header.substr(0, comma));
        if (tag.starts_with("W/")) tag.remove_prefix(2);
        if (tag == "*" || tag == etag) return true;
        header = comma == std::string_view::npos ? std::string_view{} : header.substr(comma + 1);
    }
    return false;
}

}  // namespace hearth
