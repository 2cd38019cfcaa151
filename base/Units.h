#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/Clock.h"

namespace hearth {

/// "512Mi", "1.5Gi", "64M", "4096": bytes. Binary suffixes Ki Mi Gi Ti, decimal k K M G T.
std::optional<std::uint64_t> parseBytes(std::string_view text);
/// The shortest exact binary form: "512Mi".
std::string formatBytes(std::uint64_t bytes);
/// For people, with three digits: "79.6 GiB", "64 MiB", "512 B".
std::string formatSize(double bytes);
/// "1", "0.5", "500m": thousandths of a core.
std::optional<std::uint32_t> parseMilliCpu(std::string_view text);
std::string formatMilliCpu(std::uint32_t milli);
/// "90s", "10m", "1h30m", "250ms", "2d", "0": never negative.
std::optional<std::chrono::milliseconds> parseDuration(std::string_view text);
std::string formatDuration(std::chrono::milliseconds d);
/// "0644" or "644": permission bits up to 0777.
std::optional<unsigned> parseFileMode(std::string_view text);
/// Four octal digits: "0644", "4755".
std::string formatFileMode(unsigned mode);

/// The first and the last wall time that is accepted from outside: a clock holds 1677 to 2262, and
/// ten years more or less than an accepted time still fit into it.
inline constexpr WallTime kFirstWallTime{std::chrono::sys_days(std::chrono::year(1700) / 1 / 1)};
inline constexpr WallTime kLastWallTime{std::chrono::sys_days(std::chrono::year(2250) / 1 / 1)};

/// The wall time so long after the epoch, or the accepted one that is nearest to it: the only way
/// from a number that came from outside to a wall time.
template <typename Rep, typename Period>
constexpr WallTime nearestWallTime(std::chrono::duration<Rep, Period> since_epoch) {
    // Compared as they are: the conversion to nanoseconds would overflow first.
    using Exact = std::chrono::duration<long double>;
    const Exact span(since_epoch);
    if (!(span > Exact(kFirstWallTime.time_since_epoch()))) return kFirstWallTime;
    if (span >= Exact(kLastWallTime.time_since_epoch())) return kLastWallTime;
    return WallTime(std::chrono::duration_cast<WallTime::duration>(since_epoch));
}
/// The same, but nullopt for a time beyond the accepted ones.
template <typename Rep, typename Period>
constexpr std::optional<WallTime> wallTimeAt(std::chrono::duration<Rep, Period> since_epoch) {
    const WallTime at = nearestWallTime(since_epoch);
    return at > kFirstWallTime && at < kLastWallTime ? std::optional(at) : std::nullopt;
}

/// "2026-11-21T03:04:05.678Z" of stored milliseconds, right for every year from 0 to 9999; others
/// show the nearest.
std::string formatUnixMillis(std::int64_t millis);

}  // namespace hearth
