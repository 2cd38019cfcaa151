#include "api/cli/HostLoad.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hearth::cli {
namespace {

constexpr useconds_t kSampleMicros = 500'000;

std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;
    std::string name;
    std::string verb;  ///< the first argument
};

std::optional<Process> readProcess(const std::string& directory) {
    Process process;
    const auto [end, error] =
        std::from_chars(directory.data(), directory.data() + directory.size(), process.pid);
    if (error != std::errc{} || end != directory.data() + directory.size()) return std::nullopt;
    // "pid (name) state parent …"; the name may hold anything.
    const std::string stat = slurp("/proc/" + directory + "/stat");
    const std::size_t open = stat.find('(');
    const std::size_t close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) return std::nullopt;
    process.name = stat.substr(open + 1, close - open - 1);
    char state = 0;
    std::istringstream rest(stat.substr(close + 1));
    rest >> state >> process.parent;
    const std::string arguments = slurp("/proc/" + directory + "/cmdline");
    if (const std::size_t zero = arguments.find('\0'); zero != std::string::npos) {
        process.verb = arguments.c_str() + zero + 1;
    }
    return process;
}

std::optional<std::uint64_t> pssOf(pid_t pid) {
    std::istringstream lines(slurp("/proc/" + std::to_string(pid) + "/smaps_rollup"));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("Pss:")) continue;
        return std::strtoull(line.c_str() + 4, nullptr, 10) * 1024U;
    }
    return std::nullopt;
}

/// Jiffies since boot: all, and those in which a processor had work.
std::pair<std::uint64_t, std::uint64_t> jiffies() {
    std::istringstream line(slurp("/proc/stat"));
    std::string word;
    line >> word;
    std::uint64_t total = 0;
    std::uint64_t idle = 0;
    for (int i = 0; i < 8; ++i) {
        std::uint64_t value = 0;
        line >> value;
        total += value;
        if (i == 3 || i == 4) idle += value;  // idle, iowait
    }
    return {total, total - idle};
}

}  // namespace

std::vector<ProcessMemory> hearthMemory(std::optional<pid_t> pid) {
    std::vector<Process> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (auto process = readProcess(entry.path().filename().string())) {
            if (process->name.starts_with("hearth")) all.push_back(std::move(*process));
        }
    }
    const auto is_server = [&](const Process& p) {
        return pid ? p.pid == *pid : p.verb == "serve" && p.name == "hearth";
    };
    std::vector<ProcessMemory> found;
    for (const Process& p : all) {
        std::string role;
        const bool child = std::ranges::any_of(
            all, [&](const Process& other) { return other.pid == p.parent && is_server(other); });
        if (p.name.starts_with("hearth-agent")) {
            role = "agent";
        } else if (child) {
            role = "launcher";
        } else if (is_server(p)) {
            role = "server";
        }
        if (role.empty() || p.pid == ::getpid()) continue;
        if (const auto pss = pssOf(p.pid)) found.push_back({p.pid, role, *pss});
    }
    return found;
}

std::array<double, 3> loadAverage() {
    std::array<double, 3> averages{};
    ::getloadavg(averages.data(), 3);
    return averages;
}

double busyShare() {
    const auto [total_before, busy_before] = jiffies();
    ::usleep(kSampleMicros);
    const auto [total, busy] = jiffies();
    if (total <= total_before) return 0;
    return static_cast<double>(busy - busy_before) / static_cast<double>(total - total_before);
}

}  // namespace hearth::cli
