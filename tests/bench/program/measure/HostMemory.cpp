#include "tests/bench/program/measure/HostMemory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace hearth::cli {
namespace {

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
    // "pid (name) state parent …"; the name may contain anything.
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

std::vector<Process> allProcesses() {
    std::vector<Process> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (auto process = readProcess(entry.path().filename().string())) {
            all.push_back(std::move(*process));
        }
    }
    return all;
}

std::optional<std::uint64_t> pssOf(pid_t pid) {
    std::istringstream lines(slurp("/proc/" + std::to_string(pid) + "/smaps_rollup"));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("Pss:")) continue;
        return std::strtoull(line.c_str() + 4, nullptr, 10) * 1024U;
    }
    return std::nullopt;
}

/// Returns the sandbox whose agent this process started as; empty for any other process.
std::string sandboxOf(const Process& process) {
    static const std::string kVariable = "HEARTH_SANDBOX=";
    if (process.name != "agent" && !process.name.starts_with("hearth-agent")) return {};
    const std::string environment = slurp("/proc/" + std::to_string(process.pid) + "/environ");
    for (std::size_t at = 0; at < environment.size();) {
        const std::size_t end = std::min(environment.find('\0', at), environment.size());
        if (environment.compare(at, kVariable.size(), kVariable) == 0) {
            return environment.substr(at + kVariable.size(), end - at - kVariable.size());
        }
        at = end + 1;
    }
    return {};
}

}  // namespace

std::vector<ProcessMemory> hearthMemory(std::optional<pid_t> pid) {
    const std::vector<Process> all = allProcesses();
    const auto is_server = [&](const Process& p) {
        return pid ? p.pid == *pid : p.verb == "serve" && p.name == "hearth";
    };
    std::vector<ProcessMemory> found;
    for (const Process& p : all) {
        const bool launcher =
            p.name.starts_with("hearth-l") && std::ranges::any_of(all, [&](const Process& other) {
                return other.pid == p.parent && is_server(other);
            });
        if (!launcher && !is_server(p)) continue;
        if (const auto pss = pssOf(p.pid)) {
            found.push_back({p.pid, launcher ? "launcher" : "server", *pss});
        }
    }
    return found;
}

SandboxMemory sandboxMemory(const std::vector<std::string>& sandboxes) {
    const std::set<std::string> wanted(sandboxes.begin(), sandboxes.end());
    const std::vector<Process> all = allProcesses();
    SandboxMemory memory;
    std::vector<pid_t> found;
    for (const Process& p : all) {
        if (wanted.contains(sandboxOf(p))) found.push_back(p.pid);
    }
    memory.sandboxes = found.size();
    for (std::size_t i = 0; i < found.size(); ++i) {  // `found` grows by each one's children
        for (const Process& p : all) {
            if (p.parent == found[i]) found.push_back(p.pid);
        }
    }
    for (const pid_t pid : found) {
        const auto pss = pssOf(pid);
        if (!pss) continue;  // the process has just ended
        memory.pss_bytes += *pss;
        ++memory.processes;
    }
    return memory;
}

std::uint64_t meminfoField(const std::string& text, const std::string& name) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(name + ":")) continue;
        return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024U;
    }
    return 0;
}

std::optional<std::uint64_t> availableMemory() {
    const std::uint64_t bytes = meminfoField(slurp("/proc/meminfo"), "MemAvailable");
    return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

std::uint64_t kernelInclusiveMemory() {
    const std::string text = slurp("/proc/meminfo");
    std::uint64_t bytes = 0;
    for (const char* name :
         {"AnonPages", "Shmem", "Slab", "KernelStack", "PageTables", "VmallocUsed", "Percpu"}) {
        bytes += meminfoField(text, name);
    }
    return bytes;
}

}  // namespace hearth::cli
