#include "pool/runtime/docker/ContainerUsage.h"

#include <algorithm>
#include <sstream>

#include "base/Error.h"
#include "pool/runtime/docker/ContainerConfig.h"
#include "pool/runtime/docker/engine/EngineJson.h"
#include "pool/sys/Files.h"
#include "pool/sys/GroupLimits.h"

namespace hearth::pool::docker {
namespace {

/// Finds the group of the memory controller, or of version 2, in a text of /proc/PID/cgroup.
std::optional<std::string> groupIn(const std::string& text) {
    std::optional<std::string> unified;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        if (controllers.find(",memory,") != std::string::npos) return line.substr(second + 1);
        if (controllers == ",,") unified = line.substr(second + 1);
    }
    return unified;
}

/// The part of a container's memory that the kernel can reclaim.
std::uint64_t spareMemory(const Json& memory) {
    const Json& stats = child(memory, "stats");
    // Version 1 counts the groups below in the usage, and the total_ fields include these.
    const std::string prefix = stats.contains("total_inactive_file") ? "total_" : "";
    std::uint64_t spare = 0;
    for (const char* name : {"active_file", "inactive_file", "slab_reclaimable"}) {
        spare += count(stats, (prefix + name).c_str());
    }
    return spare;
}

std::optional<LimitInUse> inUse(const SandboxUsage& usage, const SandboxLimits& limits) {
    if (usage.processes >= limits.pids) {
        return LimitInUse{LimitInUse::Of::Processes, usage.processes};
    }
    if (usage.memory_bytes > limits.memory_bytes) {
        return LimitInUse{LimitInUse::Of::Memory, usage.memory_bytes};
    }
    return std::nullopt;
}

}  // namespace

ContainerUsage::ContainerUsage(EngineClient& engine)
    : engine_(engine), cgroups_(sys::Cgroups::detect()) {}

std::optional<std::string> ContainerUsage::groupOf(const std::string& name, TimePoint until) {
    {
        const MutexLock lock(mutex_);
        const auto known = groups_.find(name);
        if (known != groups_.end()) return known->second;
    }
    const auto found = engine_.find("/containers/" + name + "/json", until);
    if (!found) return std::nullopt;
    const std::uint64_t pid = count(child(*found, "State"), "Pid");
    if (pid == 0) return std::nullopt;
    const auto groups = sys::readFile("/proc/" + std::to_string(pid) + "/cgroup");
    const std::optional<std::string> group = groups ? groupIn(*groups) : std::nullopt;
    // On another machine, or in another PID namespace, the number belongs to another process.
    const std::string id = text(*found, "Id");
    if (!group || id.empty() || group->find(id) == std::string::npos) return std::nullopt;
    const MutexLock lock(mutex_);
    groups_[name] = *group;
    return group;
}

void ContainerUsage::forget(const std::string& name) {
    const MutexLock lock(mutex_);
    groups_.erase(name);
}

std::optional<SandboxUsage> ContainerUsage::usage(const std::string& name, TimePoint until) {
    const std::optional<std::string> group = groupOf(name, until);
    if (!group) return ask(name, true, until);
    const std::optional<sys::CgroupUsage> read = sys::readUsage(cgroups_, *group);
    if (!read) return std::nullopt;
    return SandboxUsage{read->cpu_ns, read->memory_bytes, read->memory_peak_bytes, read->processes,
                        read->oom_kills};
}

std::optional<SandboxUsage> ContainerUsage::ask(const std::string& name, bool spare,
                                                TimePoint until) {
    const auto stats = engine_.find("/containers/" + name + "/stats?stream=0&one-shot=1", until);
    if (!stats || count(child(*stats, "pids_stats"), "current") == 0) return std::nullopt;
    SandboxUsage usage;
    usage.cpu_ns = count(child(child(*stats, "cpu_stats"), "cpu_usage"), "total_usage");
    const Json& memory = child(*stats, "memory_stats");
    usage.memory_bytes = count(memory, "usage");
    usage.memory_peak_bytes = std::max(count(memory, "max_usage"), usage.memory_bytes);
    usage.processes = count(child(*stats, "pids_stats"), "current");
    if (!spare) usage.memory_bytes -= std::min(usage.memory_bytes, spareMemory(memory));
    return usage;
}

std::optional<SandboxUsage> ContainerUsage::needs(const std::string& name, TimePoint until) {
    const std::optional<std::string> group = groupOf(name, until);
    if (!group) return ask(name, false, until);
    std::optional<SandboxUsage> needs = usage(name, until);
    const std::optional<std::uint64_t> memory = sys::memoryNeeded(cgroups_, *group);
    if (!needs || !memory) return std::nullopt;
    needs->memory_bytes = *memory;
    return needs;
}

std::optional<LimitInUse> ContainerUsage::narrow(const std::string& name,
                                                 const SandboxLimits& limits, TimePoint until) {
    const auto look = [&] {
        const std::optional<SandboxUsage> now = needs(name, until);
        if (!now) throw Error(ErrorCode::NotFound, "the container has gone");
        return *now;
    };
    const SandboxUsage before = look();
    if (const auto found = inUse(before, limits)) return found;
    try {
        engine_.post("/containers/" + name + "/update", limitsUpdate(limits), until);
    } catch (const std::exception&) {
        // With version 1 the kernel refuses to go below the usage; the daemon reports only a text.
        if (const auto found = inUse(look(), limits)) return found;
        throw;
    }
    // With version 2 the kernel kills processes for memory that it cannot reclaim.
    const SandboxUsage after = look();
    if (after.oom_kills > before.oom_kills) {
        return LimitInUse{LimitInUse::Of::Memory, before.memory_bytes};
    }
    return std::nullopt;
}

}  // namespace hearth::pool::docker
