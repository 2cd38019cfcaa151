#include "pool/agent/program/core/GroupUse.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kLargestFile = 16U << 10U;
constexpr std::uint64_t kNsInUs = 1000;

std::optional<std::uint64_t> leadingNumber(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// Reads the number in a file: at its begin, or after `key` at the begin of a line.
std::optional<std::uint64_t> countIn(const std::string& path, std::string_view key = {}) {
    std::string text;
    if (!readFile(path.c_str(), kLargestFile, text)) return std::nullopt;
    std::string_view left = text;
    if (key.empty()) return leadingNumber(left);
    while (!left.empty()) {
        const std::string_view line = left.substr(0, left.find('\n'));
        if (line.size() > key.size() && line.substr(0, key.size()) == key &&
            line[key.size()] == ' ') {
            return leadingNumber(line.substr(key.size() + 1));
        }
        left.remove_prefix(line.size() < left.size() ? line.size() + 1 : left.size());
    }
    return std::nullopt;
}

}  // namespace

JsonValue groupUse(const std::string& place) {
    if (place.empty()) return {};
    std::optional<std::uint64_t> kills = countIn(place + "/memory.events", "oom_kill");
    std::optional<std::uint64_t> cpu_ns;
    std::optional<std::uint64_t> memory;
    std::optional<std::uint64_t> peak;
    if (kills) {
        cpu_ns = countIn(place + "/cpu.stat", "usage_usec");
        if (cpu_ns) *cpu_ns *= kNsInUs;
        memory = countIn(place + "/memory.current");
        peak = countIn(place + "/memory.peak");  // since Linux 5.19
    } else {
        kills = countIn(place + "/memory/memory.oom_control", "oom_kill");
        cpu_ns = countIn(place + "/cpuacct/cpuacct.usage");
        memory = countIn(place + "/memory/memory.usage_in_bytes");
        peak = countIn(place + "/memory/memory.max_usage_in_bytes");
    }
    if (!kills || !cpu_ns || !memory) return {};
    JsonValue use = JsonValue::object();
    use.set("cpuNs", *cpu_ns).set("memoryBytes", *memory);
    if (peak) use.set("memoryPeakBytes", *peak);
    use.set("oomKills", *kills);
    return use;
}

}  // namespace hearth::agent
