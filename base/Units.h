#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace hearth
