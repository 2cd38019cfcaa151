#include "api/cli/doctor/HostChecks.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/host/FileTable.h"

namespace hearth::cli {
namespace {

constexpr std::array<const char*, 3> kControllers = {"memory", "pids", "cpu"};

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::set<std::string> words(const std::string& text, char separator) {
    std::set<std::string> out;
    std::istringstream stream(text);
    for (std::string word; std::getline(stream, word, separator);) {
        if (const std::string t = trimmed(word); !t.empty()) out.insert(t);
    }
    return out;
}

/// One line of /proc/self/mountinfo, with the needed fields.
struct Mount {
    std::string point;
    std::string type;
    std::string options;
};

std::vector<Mount> parseMounts(const std::string& text) {
    std::vector<Mount> mounts;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        std::istringstream before(line.substr(0, dash));
        std::istringstream after(line.substr(dash + 3));
        std::string skip;
        std::string source;
        Mount mount;
        before >> skip >> skip >> skip >> skip >> mount.point;
        after >> mount.type >> source >> mount.options;
        mounts.push_back(std::move(mount));
    }
    return mounts;
}

struct Gate {
    const char* path;  ///< under /proc/sys
    const char* name;
    int least;
    int most;
    const char* why;
    const char* set;  ///< the value to write
};

constexpr std::array<Gate, 7> kGates = {{
    {"kernel/unprivileged_bpf_disabled", "kernel.unprivileged_bpf_disabled", 1, 2,
     "any user may load BPF programs", "1"},
    {"kernel/kptr_restrict", "kernel.kptr_restrict", 1, 2, "kernel addresses are readable", "1"},
    {"kernel/io_uring_disabled", "kernel.io_uring_disabled", 1, 2,
     "io_uring is open to every process outside a sandbox", "2"},
    {"fs/protected_symlinks", "fs.protected_symlinks", 1, 1,
     "links in sticky directories are followed", "1"},
    {"fs/protected_fifos", "fs.protected_fifos", 1, 2,
     "foreign FIFOs in sticky directories are opened", "2"},
    {"fs/protected_regular", "fs.protected_regular", 1, 2,
     "foreign files in sticky directories are opened", "2"},
    {"vm/unprivileged_userfaultfd", "vm.unprivileged_userfaultfd", 0, 0,
     "any user may stall the kernel with userfaultfd", "0"},
}};

}  // namespace

std::string HostChecks::read(std::string_view path) const {
    std::ifstream file(root_ + std::string(path));
    std::ostringstream text;
    text << file.rdbuf();
    return trimmed(text.str());
}

bool HostChecks::exists(std::string_view path) const {
    std::error_code error;
    return std::filesystem::exists(root_ + std::string(path), error);
}

Finding HostChecks::kernel() const {
    const std::string release = read("/proc/sys/kernel/osrelease");
    int major = 0;
    int minor = 0;
    if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) != 2) {
        return {Level::Warn, "kernel", "its version cannot be read", "mount /proc"};
    }
    if (major < 5 || (major == 5 && minor < 10)) {
        return {Level::Fail, "kernel", release + " is older than 5.10",
                "apt-get install -y linux-image-amd64, then boot it"};
    }
    return allRight("kernel", release);
}

Finding HostChecks::userNamespaces() const {
    if (!exists("/proc/self/ns/user")) {
        return {Level::Fail, "user namespaces", "the kernel has none",
                "boot a kernel with CONFIG_USER_NS=y"};
    }
    const std::string most = read("/proc/sys/user/max_user_namespaces");
    if (most == "0") {
        return {Level::Fail, "user namespaces", "user.max_user_namespaces is 0",
                "sysctl -w user.max_user_namespaces=15000"};
    }
    return allRight("user namespaces", most.empty() ? "present" : "up to " + most);
}

Finding HostChecks::seccomp() const {
    const std::string actions = read("/proc/sys/kernel/seccomp/actions_avail");
    if (actions.find("errno") != std::string::npos) return allRight("seccomp", actions);
    return {Level::Fail, "seccomp", "the kernel filters no system calls",
            "boot a kernel with CONFIG_SECCOMP_FILTER=y"};
}

Finding HostChecks::loopDevices() const {
    if (exists("/dev/loop-control")) return allRight("loop devices", "/dev/loop-control");
    return {Level::Fail, "loop devices", "/dev/loop-control is missing: no storage of kind Disk",
            "modprobe loop; or use `storage: Memory` in every pool"};
}

Finding HostChecks::runTmpfs() const {
    // The deepest mount point wins; the last of equal ones is on top.
    std::string best;
    std::string type;
    for (const Mount& mount : parseMounts(read("/proc/self/mountinfo"))) {
        const bool holds = mount.point == "/" || mount.point == "/run";
        if (holds && mount.point.size() >= best.size()) {
            best = mount.point;
            type = mount.type;
        }
    }
    if (best == "/run" && type == "tmpfs") return allRight("/run", "tmpfs");
    return {Level::Warn, "/run",
            "is not a tmpfs: marks of claimed sandboxes survive a reboot and cost a disk write",
            "mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run"};
}

Finding HostChecks::cgroups() const {
    std::set<std::string> v1;
    std::set<std::string> v2;
    bool unified = false;
    for (const Mount& mount : parseMounts(read("/proc/self/mountinfo"))) {
        if (mount.type == "cgroup2") {
            unified = true;
            v2.merge(words(read(mount.point + "/cgroup.controllers"), ' '));
        } else if (mount.type == "cgroup") {
            v1.merge(words(mount.options, ','));
        }
    }
    std::string missing;
    for (const char* controller : kControllers) {
        if (v1.contains(controller) || v2.contains(controller)) continue;
        missing += (missing.empty() ? "" : ", ") + std::string(controller);
    }
    const bool any_v1 = v1.contains("memory") || v1.contains("pids") || v1.contains("cpu");
    std::string layout = "none";
    if (unified) layout = any_v1 ? "hybrid" : "v2";
    if (!unified && !v1.empty()) layout = "v1";
    if (missing.empty()) return allRight("cgroups", layout + " with memory, pids, cpu");
    if (layout == "none") {
        return {Level::Fail, "cgroups", "no cgroup file system is mounted",
                "mount -t cgroup2 none /sys/fs/cgroup"};
    }
    return {Level::Fail, "cgroups", layout + " without " + missing,
            layout == "v2"
                ? "echo '+memory +pids +cpu' > /sys/fs/cgroup/cgroup.subtree_control"
                : "boot with cgroup_enable=memory, and mount each controller under /sys/fs/cgroup"};
}

Finding HostChecks::oomScores() const {
    constexpr const char* kName = "CAP_SYS_RESOURCE";
    constexpr unsigned kBit = 24;
    const std::string status = read("/proc/self/status");
    const std::size_t at = status.find("CapBnd:");
    if (at == std::string::npos) return allRight(kName, "not known");
    const std::uint64_t bounding = std::strtoull(status.c_str() + at + 7, nullptr, 16);
    if ((bounding >> kBit & 1U) != 0)
        return allRight(kName,
                        "present: when memory runs out, the kernel ends tenants before agents");
    return {Level::Warn, kName,
            "root does not have it: tenants can lower their oom_score_adj to the agent's; the "
            "agent raises it again once a second",
            "give it to Hearth: docker run --cap-add SYS_RESOURCE, or CapabilityBoundingSet= of "
            "its unit"};
}

Finding HostChecks::openFiles() const {
    constexpr const char* kName = "open files";
    // Each process of a sandbox may open 65,536; the server steps in at half of the machine's.
    constexpr std::uint64_t kFewest = 500'000;
    constexpr std::uint64_t kBusyShare = 4;
    const std::optional<FileTable> table = parseFileTable(read("/proc/sys/fs/file-nr"));
    if (!table) return allRight(kName, "not known");
    const std::string used =
        std::to_string(table->open) + " of the machine's " + std::to_string(table->most);
    if (table->most < kFewest) {
        return {Level::Warn, kName, used + ": a few sandboxes can use them up",
                "sysctl -w fs.file-max=" + std::to_string(kFewest)};
    }
    if (table->open >= table->most / kBusyShare) {
        return {Level::Warn, kName,
                used + ": from half of them on, the workspace that holds most of them is ended",
                "sysctl -w fs.file-max=" + std::to_string(table->most * 2)};
    }
    return allRight(kName, used);
}

Findings HostChecks::gates() const {
    Findings findings;
    for (const Gate& gate : kGates) {
        const std::string text = read("/proc/sys/" + std::string(gate.path));
        int value = 0;
        if (text.empty() || std::sscanf(text.c_str(), "%d", &value) != 1) continue;  // not built in
        if (value >= gate.least && value <= gate.most) {
            findings.push_back(allRight(gate.name, text));
        } else {
            findings.push_back({Level::Warn, gate.name, "is " + text + ": " + gate.why,
                                "sysctl -w " + std::string(gate.name) + "=" + gate.set});
        }
    }
    if (const std::string pattern = read("/proc/sys/kernel/core_pattern");
        pattern.starts_with('|')) {
        findings.push_back({Level::Warn, "kernel.core_pattern",
                            "pipes core dumps of sandboxes to a program of the host",
                            "sysctl -w kernel.core_pattern=core"});
    }
    if (read("/sys/kernel/mm/ksm/run") == "1") {
        findings.push_back({Level::Warn, "same-page merging",
                            "is on: tenants can learn what other tenants hold in memory",
                            "echo 2 > /sys/kernel/mm/ksm/run"});
    }
    const std::string swaps = read("/proc/swaps");
    if (swaps.find('\n') != std::string::npos) {
        findings.push_back({Level::Warn, "swap", "is on: memory of tenants reaches a disk",
                            "swapoff -a, or encrypt it"});
    }
    const std::string modules = read("/sys/kernel/security/lsm");
    if (!modules.empty()) findings.push_back(allRight("security modules", modules));
    return findings;
}

Findings HostChecks::all() const {
    Findings findings = {kernel(),      userNamespaces(), cgroups(),   seccomp(),
                         loopDevices(), runTmpfs(),       oomScores(), openFiles()};
    for (Finding& finding : gates()) findings.push_back(std::move(finding));
    return findings;
}

}  // namespace hearth::cli
