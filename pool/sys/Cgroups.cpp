#include "pool/sys/Cgroups.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

#include "base/Error.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::sys {
namespace {

/// Polls, since cgroup v1 has no event for an empty group, and cgroup.events of v2 does not say
/// when rmdir may succeed.
constexpr auto kRetry = std::chrono::milliseconds(2);
constexpr auto kProcessEnd = std::chrono::milliseconds(50);

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
    return parts;
}

bool isDirectory(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool isController(const std::string& option) {
    static const std::set<std::string> controllers{
        "cpu",  "cpuacct", "cpuset",     "memory",   "devices", "freezer", "blkio",
        "pids", "net_cls", "perf_event", "net_prio", "hugetlb", "rdma",    "misc"};
    return controllers.contains(option);
}

/// True if the process is still in this group: its cgroup file names the group in one of its lines.
bool isMember(pid_t pid, const std::string& path) {
    const auto groups = readFile("/proc/" + std::to_string(pid) + "/cgroup");
    return groups && (*groups + "\n").find(":" + path + "\n") != std::string::npos;
}

std::uint64_t number(const std::optional<std::string>& text) {
    return text ? std::strtoull(text->c_str(), nullptr, 10) : 0;
}

}  // namespace

Cgroups Cgroups::detect() {
    return parse(readFile("/proc/self/mountinfo").value_or(std::string()));
}

Cgroups Cgroups::parse(const std::string& mountinfo) {
    Cgroups found;
    bool v1 = false;
    for (const std::string& line : split(mountinfo, '\n')) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        const auto left = split(line.substr(0, dash), ' ');
        const auto right = split(line.substr(dash + 3), ' ');
        if (left.size() < 5 || right.size() < 3) continue;
        if (right[0] == "cgroup2") {
            found.trees_.push_back({left[4], {}, true});
        } else if (right[0] == "cgroup") {
            Tree tree{left[4], {}, false};
            for (const std::string& option : split(right[2], ',')) {
                if (isController(option)) tree.controllers.push_back(option);
            }
            v1 = v1 || !tree.controllers.empty();
            found.trees_.push_back(std::move(tree));
        }
    }
    if (v1) {
        found.version_ = CgroupVersion::V1;
    } else if (!found.trees_.empty()) {
        found.version_ = CgroupVersion::V2;
    }
    return found;
}

std::optional<std::string> Cgroups::directory(const std::string& controller,
                                              const std::string& path) const {
    for (const Tree& tree : trees_) {
        if (version_ == CgroupVersion::V2
                ? tree.unified
                : std::count(tree.controllers.begin(), tree.controllers.end(), controller) > 0) {
            return tree.mount + path;
        }
    }
    return std::nullopt;
}

std::vector<std::string> Cgroups::children(const std::string& parent) const {
    std::set<std::string> names;
    for (const Tree& tree : trees_) {
        const std::string folder = tree.mount + parent + "/";
        for (const std::string& name : listDirectory(folder)) {
            if (isDirectory(folder + name)) names.insert(name);
        }
    }
    return {names.begin(), names.end()};
}

bool Cgroups::exists(const std::string& path) const {
    return std::any_of(trees_.begin(), trees_.end(),
                       [&](const Tree& tree) { return isDirectory(tree.mount + path); });
}

std::vector<pid_t> Cgroups::processes(const std::string& path) const {
    std::set<pid_t> pids;
    for (const Tree& tree : trees_) {
        const auto text = readFile(tree.mount + path + "/cgroup.procs");
        if (!text) continue;
        for (const std::string& line : split(*text, '\n')) {
            // 0 stands for a process that this pid namespace cannot see.
            const auto pid = static_cast<pid_t>(std::strtol(line.c_str(), nullptr, 10));
            if (pid > 0) pids.insert(pid);
        }
    }
    return {pids.begin(), pids.end()};
}

bool Cgroups::killAll(const std::string& path, std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const std::vector<pid_t> pids = processes(path);
        if (pids.empty()) return true;
        for (const Tree& tree : trees_) {
            const std::string all = tree.mount + path + "/cgroup.kill";  // since Linux 5.14
            if (tree.unified && ::access(all.c_str(), W_OK) == 0) writeKernelFile(all, "1");
        }
        std::optional<Process> one;
        for (const pid_t pid : pids) {
            std::optional<Process> process = Process::open(pid);
            if (!process || !isMember(pid, path)) continue;
            process->kill();
            one = std::move(process);
        }
        if (std::chrono::steady_clock::now() >= end) return false;
        if (one) {
            one->waitEnd(kProcessEnd);
        } else {
            std::this_thread::sleep_for(kRetry);
        }
    }
}

bool Cgroups::remove(const std::string& path, std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        bool busy = false;
        for (const Tree& tree : trees_) {
            const std::string directory = tree.mount + path;
            if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) continue;
            // EBUSY also while the last process is being torn down, ENOTEMPTY with groups below.
            if (errno != EBUSY && errno != ENOTEMPTY) throwErrno("rmdir", directory);
            busy = true;
        }
        if (!busy) return true;
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(kRetry);
    }
}

std::optional<CgroupUsage> readUsage(const Cgroups& cgroups, const std::string& path) {
    const auto memory = cgroups.directory("memory", path);
    const auto pids = cgroups.directory("pids", path);
    if (!memory || !pids || !isDirectory(*pids)) return std::nullopt;
    CgroupUsage usage;
    usage.processes = number(readFile(*pids + "/pids.current"));
    if (cgroups.version() == CgroupVersion::V2) {
        usage.cpu_ns = keyedNumber(readFile(*memory + "/cpu.stat"), "usage_usec") * 1000;
        usage.memory_bytes = number(readFile(*memory + "/memory.current"));
        usage.memory_peak_bytes = number(readFile(*memory + "/memory.peak"));
        usage.oom_kills = keyedNumber(readFile(*memory + "/memory.events"), "oom_kill");
    } else {
        const auto cpu = cgroups.directory("cpuacct", path);
        if (cpu) usage.cpu_ns = number(readFile(*cpu + "/cpuacct.usage"));
        usage.memory_bytes = number(readFile(*memory + "/memory.usage_in_bytes"));
        usage.memory_peak_bytes = number(readFile(*memory + "/memory.max_usage_in_bytes"));
        usage.oom_kills = keyedNumber(readFile(*memory + "/memory.oom_control"), "oom_kill");
    }
    return usage;
}

std::uint64_t keyedNumber(const std::optional<std::string>& text, const std::string& key) {
    if (!text) return 0;
    for (const std::string& line : split(*text, '\n')) {
        if (line.starts_with(key + " ")) {
            return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
        }
    }
    return 0;
}

}  // namespace hearth::sys
