#include "base/trace/TraceContext.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/Digest.h"
#include "base/Ids.h"

namespace hearth {
namespace {

constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kParentSize = 55;
constexpr std::size_t kLongestState = 512;

bool isLowerHex(std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool isNonZeroHex(std::string_view text) {
    return isLowerHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

std::string randomHex(std::size_t bytes) {
    thread_local std::array<std::uint8_t, 1024> drawn;
    thread_local std::size_t left = 0;
    if (left < bytes) {
        randomBytes(drawn.data(), drawn.size());
        left = drawn.size();
    }
    left -= bytes;
    return toHex(drawn.data() + left, bytes);
}

std::string newHexId(std::size_t digits) {
    std::string id = randomHex(digits / 2);
    while (!isNonZeroHex(id)) id = randomHex(digits / 2);
    return id;
}

}  // namespace

std::optional<TraceContext> parseTraceContext(std::string_view parent, std::string_view state) {
    if (parent.size() < kParentSize || parent[2] != '-' || parent[35] != '-' || parent[52] != '-') {
        return std::nullopt;
    }
    const std::string_view version = parent.substr(0, 2);
    const std::string_view trace = parent.substr(3, kTraceDigits);
    const std::string_view span = parent.substr(36, kSpanDigits);
    const std::string_view flags = parent.substr(53, 2);
    if (!isLowerHex(version) || version == "ff" || !isNonZeroHex(trace) || !isNonZeroHex(span) ||
        !isLowerHex(flags)) {
        return std::nullopt;
    }
    // A later version may have more fields after those of version 00.
    if (parent.size() > kParentSize && (version == "00" || parent[kParentSize] != '-')) {
        return std::nullopt;
    }
    const bool passes = state.size() <= kLongestState &&
                        std::all_of(state.begin(), state.end(),
                                    [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
    const bool sampled = std::string_view("13579bdf").find(flags[1]) != std::string_view::npos;
    return TraceContext{std::string(trace), std::string(span), sampled,
                        passes ? std::string(state) : std::string()};
}

std::string traceParent(const TraceContext& context) {
    std::string text = "00-";
    text.append(context.trace_id).append("-").append(context.span_id);
    return text.append(context.sampled ? "-01" : "-00");
}

std::string newTraceId() {
    return newHexId(kTraceDigits);
}

std::string newSpanId() {
    return newHexId(kSpanDigits);
}

}  // namespace hearth
