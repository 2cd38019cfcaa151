#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::sys {

enum class CgroupVersion { None, V1, V2 };

/// The machine's control groups: one tree per set of controllers (v1, with or without an
/// empty unified tree beside them) or one for all (v2). A value; reading it again is
/// cheap.
class Cgroups {
public:
    struct Tree {
        std::string mount;                     ///< e.g. /sys/fs/cgroup/memory
        std::vector<std::string> controllers;  ///< empty for named and unified trees
        bool unified = false;
    };

    /// Reads /proc/self/mountinfo, or text of that form.
    static Cgroups detect();
    static Cgroups parse(const std::string& mountinfo);

    CgroupVersion version() const noexcept { return version_; }
    const std::vector<Tree>& trees() const noexcept { return trees_; }
    /// Returns the directory of group `path` ("/a/b") in `controller`'s tree; nullopt without it.
    std::optional<std::string> directory(const std::string& controller,
                                         const std::string& path) const;
    /// Returns the names of the groups directly below `parent`, in any tree, sorted, each once.
    std::vector<std::string> children(const std::string& parent) const;
    bool exists(const std::string& path) const;
    /// Returns the processes in the group, in any tree.
    std::vector<pid_t> processes(const std::string& path) const;
    /// Kills until the group is empty in every tree; false if `limit` passed first. Opens a pidfd
    /// for each process and checks its group again before the kill, so no reused number is hit.
    bool killAll(const std::string& path, std::chrono::milliseconds limit) const;
    /// Removes the empty group from every tree, retrying while the kernel calls it busy; false if
    /// `limit` passed first.
    bool remove(const std::string& path, std::chrono::milliseconds limit) const;

private:
    CgroupVersion version_ = CgroupVersion::None;
    std::vector<Tree> trees_;
};

/// A group's present usage. Both versions; nullopt if the group is gone.
struct CgroupUsage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t memory_peak_bytes = 0;
    std::uint64_t processes = 0;
    std::uint64_t oom_kills = 0;
};
std::optional<CgroupUsage> readUsage(const Cgroups& cgroups, const std::string& path);

/// Returns the number after `key` in lines of "key number", as in kernel files; 0 without one.
std::uint64_t keyedNumber(const std::optional<std::string>& text, const std::string& key);

}  // namespace hearth::sys
