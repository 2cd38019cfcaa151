#include "base/Units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

namespace hearth {
namespace {

/// Reads a plain decimal number ("12", "1.5"); leaves the rest in `text`.
std::optional<double> takeNumber(std::string_view& text) {
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

struct Suffix {
    std::string_view text;
    double factor;
};

constexpr std::array<Suffix, 10> kByteSuffixes{{{"Ki", 1024.0},
                                                {"Mi", 1048576.0},
                                                {"Gi", 1073741824.0},
                                                {"Ti", 1099511627776.0},
                                                {"k", 1e3},
                                                {"K", 1e3},
                                                {"M", 1e6},
                                                {"G", 1e9},
                                                {"T", 1e12},
                                                {"", 1.0}}};

// Longer suffixes before their prefixes: "ms" before "m".
constexpr std::array<Suffix, 5> kTimeSuffixes{
    {{"ms", 1.0}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};

constexpr double kMaxDurationMillis = 3650.0 * 86400e3;  // ten years

}  // namespace

std::optional<std::uint64_t> parseBytes(std::string_view text) {
    const std::optional<double> number = takeNumber(text);
    if (!number) return std::nullopt;
    for (const Suffix& suffix : kByteSuffixes) {
        if (text != suffix.text) continue;
        const double bytes = *number * suffix.factor;
        if (bytes != std::floor(bytes) || bytes > 9e15) return std::nullopt;
        return static_cast<std::uint64_t>(bytes);
    }
    return std::nullopt;
}

std::string formatBytes(std::uint64_t bytes) {
    static constexpr std::array<std::pair<const char*, unsigned>, 4> kUnits{
        {{"Ti", 40}, {"Gi", 30}, {"Mi", 20}, {"Ki", 10}}};
    for (const auto& [name, shift] : kUnits) {
        if (bytes != 0 && (bytes & ((1ULL << shift) - 1)) == 0) {
            return std::to_string(bytes >> shift) + name;
        }
    }
    return std::to_string(bytes);
}

std::string formatSize(double bytes) {
    const char* unit = "B";
    for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
        if (bytes < 1024) break;
        bytes /= 1024;
        unit = next;
    }
    char text[48];
    // %.3g alone writes 1000 as 1e+03.
    std::snprintf(text, sizeof(text), bytes < 100 ? "%.3g %s" : "%.0f %s", bytes, unit);
    return text;
}

std::optional<std::uint32_t> parseMilliCpu(std::string_view text) {
    const std::optional<double> number = takeNumber(text);
    if (!number) return std::nullopt;
    // "1.001" times a thousand is not exactly a whole number: such decimals have no exact double.
    const double exact = text == "m" ? *number : *number * 1000;
    const double milli = std::round(exact);
    if (!(text.empty() || text == "m") || std::abs(exact - milli) > 1e-6 || milli > 1e6) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(milli);
}

std::string formatMilliCpu(std::uint32_t milli) {
    return milli % 1000 == 0 ? std::to_string(milli / 1000) : std::to_string(milli) + "m";
}

std::optional<std::chrono::milliseconds> parseDuration(std::string_view text) {
    if (text == "0") return std::chrono::milliseconds(0);
    double total = 0;
    if (text.empty()) return std::nullopt;
    while (!text.empty()) {
        const std::optional<double> number = takeNumber(text);
        if (!number) return std::nullopt;
        bool known = false;
        for (const Suffix& suffix : kTimeSuffixes) {
            if (!text.starts_with(suffix.text)) continue;
            total += *number * suffix.factor;
            text.remove_prefix(suffix.text.size());
            known = true;
            break;
        }
        if (!known) return std::nullopt;
    }
    if (total > kMaxDurationMillis) return std::nullopt;
    return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

std::string formatDuration(std::chrono::milliseconds d) {
    const std::int64_t ms = d.count();
    if (ms == 0) return "0";
    if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
    if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
    if (ms % 1000 == 0) return std::to_string(ms / 1000) + "s";
    return std::to_string(ms) + "ms";
}

std::optional<unsigned> parseFileMode(std::string_view text) {
    unsigned mode = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, mode, 8);
    const bool whole = error == std::errc{} && stop == end;
    if (text.size() < 3 || text.size() > 4 || !whole || mode > 0777U) return std::nullopt;
    return mode;
}

std::string formatFileMode(unsigned mode) {
    constexpr const char* kDigits = "01234567";
    std::string octal;
    for (int shift = 9; shift >= 0; shift -= 3) octal.push_back(kDigits[(mode >> shift) & 7U]);
    return octal;
}

std::string formatUnixMillis(std::int64_t millis) {
    constexpr std::int64_t kFirst = -62'167'219'200'000;  // the beginning of the year 0
    constexpr std::int64_t kLast = 253'402'300'799'999;   // the end of the year 9999
    const std::chrono::milliseconds at(std::clamp(millis, kFirst, kLast));
    const auto whole = std::chrono::floor<std::chrono::seconds>(at);
    const std::time_t seconds = whole.count();
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                  parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                  parts.tm_min, parts.tm_sec, static_cast<int>((at - whole).count()));
    return text.data();
}

}  // namespace hearth
