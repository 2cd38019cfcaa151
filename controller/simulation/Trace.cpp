#include "controller/simulation/Trace.h"

#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>

#include "base/Error.h"
#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr const char* kAllowed =
    "seconds since the start (12.5) or a time in UTC (2026-01-05T08:00:00.250Z), one a line, "
    "none before the one above it";
constexpr double kMostSeconds = 10.0 * 366 * 86'400;
constexpr std::size_t kMostShown = 40;
constexpr std::size_t kSecondsLength = 19;  // of 2026-01-05T08:00:00

std::optional<double> plainNumber(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    if (error != std::errc{} || at != end || !std::isfinite(value)) return std::nullopt;
    return value;
}

std::optional<WallTime> utcTime(std::string_view text) {
    if (text.size() <= kSecondsLength || text.back() != 'Z') return std::nullopt;
    std::tm parts{};
    const std::string whole(text.substr(0, kSecondsLength));
    const char* rest = ::strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr || *rest != '\0') return std::nullopt;
    std::string_view fraction = text.substr(kSecondsLength);
    fraction.remove_suffix(1);
    double part = 0;
    if (!fraction.empty()) {
        const std::optional<double> read = plainNumber("0" + std::string(fraction));
        if (fraction.front() != '.' || !read) return std::nullopt;
        part = *read;
    }
    const std::optional<WallTime> at = wallTimeAt(std::chrono::seconds(::timegm(&parts)));
    if (!at) return std::nullopt;
    return *at +
           std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(part));
}

[[noreturn]] void refuse(const std::string& source, std::size_t line, std::string_view value,
                         const char* why) {
    throw Error(ErrorCode::InvalidArgument, source + " line " + std::to_string(line) + ": \"" +
                                                std::string(value.substr(0, kMostShown)) + "\" " +
                                                why)
        .hint(std::string("a trace has ") + kAllowed);
}

std::string_view trimmedLine(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

WallTime traceEpoch() {
    constexpr std::time_t kMonday = 1'767'571'200;  // 2026-01-05T00:00:00Z
    return std::chrono::system_clock::from_time_t(kMonday);
}

Trace readTrace(std::string_view text, const std::string& source) {
    Trace trace{source, traceEpoch(), {}};
    std::optional<bool> dated;
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trimmedLine(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        if (line.empty() || line.front() == '#') continue;
        std::optional<double> seconds = plainNumber(line);
        const std::optional<WallTime> time = seconds ? std::nullopt : utcTime(line);
        if (!seconds && !time) refuse(source, number, line, "is no time");
        if (dated && *dated != time.has_value()) {
            refuse(source, number, line, "mixes seconds and dates");
        }
        if (time && !dated) trace.start = *time;
        dated = time.has_value();
        if (time) seconds = std::chrono::duration<double>(*time - trace.start).count();
        if (!time && *seconds < 0) refuse(source, number, line, "is negative");
        if (!trace.at.empty() && *seconds < trace.at.back()) {
            refuse(source, number, line, "is before the line above it");
        }
        if (*seconds > kMostSeconds) refuse(source, number, line, "is more than ten years");
        trace.at.push_back(*seconds);
    }
    if (trace.at.empty()) {
        throw Error(ErrorCode::InvalidArgument, source + " has no arrival")
            .hint(std::string("a trace has ") + kAllowed);
    }
    return trace;
}

}  // namespace hearth::controller
