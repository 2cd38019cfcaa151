#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "base/Ids.h"
#include "pool/isolation/OpenFiles.h"
#include "pool/launcher/LauncherCapabilities.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

using pool::SandboxId;

std::string oneLine(const std::string& path) {
    std::string text = sys::readFile(path).value_or("missing");
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

/// Returns a field of /proc/PID/status.
std::string status(const std::string& text, const std::string& field) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(field + ":")) continue;
        const std::size_t value = line.find_first_not_of(" \t", field.size() + 1);
        return value == std::string::npos ? "" : line.substr(value);
    }
    return "missing";
}

/// True if root can set an OOM score below which processes started there cannot go.
bool hasFloor() {
    const std::string own = status(sys::readFile("/proc/self/status").value_or(""), "CapBnd");
    return (std::stoull(own, nullptr, 16) >> 24U & 1U) != 0;  // CAP_SYS_RESOURCE
}

const std::string kNoCaps(16, '0');
constexpr std::uint64_t kAgentCaps = (1U << 5U) | (1U << 6U) | (1U << 7U) | (1U << 8U);

}  // namespace

TEST_CASE("the kernel holds the limits of the spec", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const std::string group = host.cgroupOf(id);
    const sys::Cgroups cgroups = sys::Cgroups::detect();
    const auto read = [&](const char* controller, const std::string& file) {
        const auto directory = cgroups.directory(controller, group);
        return directory ? oneLine(*directory + "/" + file) : std::string("no controller");
    };
    const std::string memory = std::to_string(host.spec().limits.memory_bytes);
    if (cgroups.version() == sys::CgroupVersion::V1) {
        CHECK(read("memory", "memory.limit_in_bytes") == memory);
        CHECK(read("memory", "memory.memsw.limit_in_bytes") == memory);
        CHECK(read("cpu", "cpu.cfs_quota_us") == "50000");
        CHECK(read("cpu", "cpu.cfs_period_us") == "100000");
        CHECK(read("cpu", "cpu.shares") == "128");
        const std::string devices = read("devices", "devices.list");
        CHECK(devices.find("a *:* rwm") == std::string::npos);
        CHECK(devices.find("b *:* r") == std::string::npos);
        CHECK(devices.find("c 1:3 rw") != std::string::npos);
    } else {
        CHECK(read("memory", "memory.max") == memory);
        CHECK(read("memory", "memory.swap.max") == "0");
        CHECK(read("cpu", "cpu.max") == "50000 100000");
    }
    CHECK(read("pids", "pids.max") == "64");
    host.runtime().destroy(id);
}

TEST_CASE("oci: a sandbox goes before the others while it is told to, and only then", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const sys::Cgroups cgroups = sys::Cgroups::detect();
    const bool v2 = cgroups.version() == sys::CgroupVersion::V2;
    const auto directory = cgroups.directory("cpu", host.cgroupOf(id));
    REQUIRE(directory);
    const std::string file = *directory + (v2 ? "/cpu.weight" : "/cpu.shares");
    const std::string ordinary = v2 ? "12" : "128";
    CHECK(oneLine(file) == ordinary);
    CHECK(host.runtime().goFirst(id, true));
    CHECK(oneLine(file) == (v2 ? "384" : "4096"));
    CHECK(host.runtime().goFirst(id, false));
    CHECK(oneLine(file) == ordinary);
    // Only the server that asked for it may weigh the group, and it may change nothing else there.
    struct stat weight {};
    struct stat processes {};
    REQUIRE(::stat(file.c_str(), &weight) == 0);
    REQUIRE(::stat((*directory + "/cgroup.procs").c_str(), &processes) == 0);
    CHECK((weight.st_mode & 022) == 0);
    CHECK(processes.st_uid == 0);
    host.runtime().destroy(id);
    CHECK(host.runtime().goFirst(id, true));  // nothing to do
}

TEST_CASE("the agent has no more capabilities than it needs, and a filter",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const std::string proc = "/proc/" + std::to_string(host.initOf(id));
    const SmallAgent serving(host.runtime().connect(id));  // the agent has begun
    const std::string text = sys::readFile(proc + "/status").value_or("");
    const std::uint64_t needed = kind() == Kind::Oci ? kAgentCaps : 0;
    for (const char* set : {"CapEff", "CapPrm", "CapBnd"}) {
        INFO(set);
        CHECK((std::stoull(status(text, set), nullptr, 16) & ~needed) == 0);
    }
    CHECK(status(text, "CapInh") == kNoCaps);
    CHECK(status(text, "CapAmb") == kNoCaps);
    CHECK(status(text, "NoNewPrivs") == "1");
    CHECK(status(text, "Seccomp") == "2");
    // Without such a floor, the agent has the lowest score that its tenants could choose.
    CHECK(oneLine(proc + "/oom_score_adj") == (hasFloor() ? "900" : "0"));
    host.runtime().destroy(id);
}

TEST_CASE("oci: each sandbox has a range of uids of its own, as a user namespace", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const std::string proc = "/proc/" + std::to_string(host.initOf(id));
    std::istringstream map(sys::readFile(proc + "/uid_map").value_or(""));
    std::uint64_t inside = 1;
    std::uint64_t outside = 0;
    std::uint64_t count = 0;
    map >> inside >> outside >> count;
    CHECK(inside == 0);
    CHECK(outside >= 200'000);
    CHECK((outside - 200'000) % 65'536 == 0);
    CHECK(count == 65'536);
    host.runtime().destroy(id);
}

TEST_CASE("a tenant process has no capability, no privilege and two filters", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const std::string text = agent.run("cat /proc/self/status").output;
    CHECK(status(text, "Uid") == "1000\t1000\t1000\t1000");
    CHECK(status(text, "Gid") == "1000\t1000\t1000\t1000");
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
        INFO(set);
        CHECK(status(text, set) == kNoCaps);
    }
    CHECK(status(text, "NoNewPrivs") == "1");
    CHECK(status(text, "Seccomp") == "2");
    CHECK(status(text, "Seccomp_filters") == "2");
    host.runtime().destroy(id);
}

TEST_CASE("what hostile code tries is refused", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const std::string eperm = "1";
    const std::string enosys = "38";
    auto tried = pairs(agent.run("probe attacks").output);
    REQUIRE(tried.size() > 20);
    for (const char* name : {"clone3", "io_uring", "newer_call"}) {
        INFO(name);
        CHECK(tried[name] == enosys);
        tried.erase(name);
    }
    for (const char* name :
         {"mem_agent", "environ_agent", "write_agent", "write_root", "write_sysctl"}) {
        INFO(name);  // EACCES or EROFS: only success is wrong
        CHECK(tried[name] != "0");
        tried.erase(name);
    }
    for (const auto& [name, error] : tried) {
        INFO(name);
        CHECK(error == eperm);
    }
    CHECK(agent.run("probe int80").signal() == 31);
    CHECK(agent.run("probe x32").signal() == 31);
    CHECK(agent.run("echo the agent lives").output == "the agent lives\n");
    host.runtime().destroy(id);
}

TEST_CASE("what programs need of the scheduler and the file system works", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const auto tried = pairs(agent.run("probe needs").output);
    REQUIRE(tried.size() == 13);
    for (const auto& [name, error] : tried) {
        INFO(name);
        CHECK(error == (name.starts_with("no_") ? "1" : "0"));
    }
    CHECK(agent.run("cat pipe & echo through > pipe; wait").output == "through\n");
    host.runtime().destroy(id);
}

TEST_CASE("only harmless families of sockets can be made", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    auto tried = pairs(agent.run("probe sockets").output);
    CHECK(tried["raw"] == "1");
    CHECK(tried["netlink_xfrm"] == "1");
    CHECK(tried["pair_unix"] == "0");
    CHECK(tried["pair_inet"] == "1");
    for (int family = 0; family < 46; ++family) {
        const bool allowed = family == 1 || family == 2 || family == 10 || family == 16;
        INFO("family " << family);
        CHECK((tried["family" + std::to_string(family)] != "1") == allowed);
    }
    CHECK(agent
              .run("ls /sys/class/net 2>/dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1 | "
                   "tr -d ' '")
              .output == "lo\n");
    CHECK(agent.run("echo x | nc -w 1 1.1.1.1 53").exitCode() != 0);
    host.runtime().destroy(id);
}

TEST_CASE("a workspace ends at its size and its number of files", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const pool::Storage storage = GENERATE(pool::Storage::Disk, pool::Storage::Memory);
    pool::SandboxSpec spec = host.spec();
    spec.storage = storage;
    const SandboxId id = newId("sb_");
    host.runtime().create(id, spec);
    SmallAgent agent(host.runtime().connect(id));
    CHECK(agent.run("stat -c '%u %g %a' /workspace").output == "1000 1000 700\n");
    CHECK(agent.run("ls -A /workspace").output.empty());
    auto filled = pairs(agent.run("probe fill").output);
    CHECK(filled["error"] == "28");  // ENOSPC
    CHECK(std::stoull(filled["bytes"]) <= spec.limits.workspace_bytes);
    CHECK(std::stoull(filled["bytes"]) >= spec.limits.workspace_bytes * 8 / 10);
    agent.run("rm /workspace/full");
    auto inodes = pairs(agent.run("probe inodes").output);
    CHECK(inodes["error"] == "28");
    CHECK(std::stol(inodes["made"]) <= 2048);
    CHECK(std::stol(inodes["made"]) >= 1000);
    CHECK(agent.run("echo still there").output == "still there\n");
    host.runtime().destroy(id);
    CHECK(host.leftovers().empty());
}

TEST_CASE("the root is read-only, what /proc could tell is masked, nothing can be mounted",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    CHECK(agent.run("touch /bin/x 2>&1").output.find("Read-only") != std::string::npos);
    const std::string mounts = agent.run("cat /proc/self/mounts").output;
    INFO(mounts);
    CHECK(agent.run("stat -c '%a' /tmp /dev/shm; echo x > /tmp/x && echo x > /dev/shm/x").output ==
          "1777\n1777\n");
    if (kind() == Kind::Oci)
        CHECK(agent.run("ls /sys /sys/fs").output == "/sys:\nfs\n\n/sys/fs:\ncgroup\n");
    CHECK(agent.run("find /sys -path /sys/fs/cgroup -prune -o ! -type d -print").output.empty());
    CHECK(agent.run("touch /sys/x /sys/fs/x 2>/dev/null; ls -d /sys/x /sys/fs/x 2>/dev/null")
              .output.empty());
    CHECK(mounts.find(" /.hearth/run tmpfs rw,") != std::string::npos);
    const std::string files = std::to_string(pool::launcher::mostOpenFiles());
    CHECK(agent.run("ulimit -Sn; ulimit -Hn; ulimit -n $(ulimit -Hn); ulimit -n").output ==
          "1024\n" + files + "\n" + files + "\n");
    CHECK(agent.run("echo out > /dev/stdout; echo err > /proc/self/fd/2; cat /dev/stdin").output ==
          "out\nerr\n");
    if (kind() == Kind::Oci)
        CHECK(agent.run("touch /.hearth/run/x 2>&1").output.find("denied") != std::string::npos);
    const std::size_t inside = mounts.find(" /.hearth ");
    REQUIRE(inside != std::string::npos);
    CHECK(mounts.substr(inside, mounts.find('\n', inside) - inside).find(" ro") !=
          std::string::npos);
    CHECK(agent
              .run("touch /.hearth/x /.hearth/start/x 2>/dev/null; ls /.hearth/x "
                   "/.hearth/start/x 2>/dev/null")
              .output.empty());
    for (const char* path :
         {"cmdline", "kallsyms", "interrupts", "vmstat", "slabinfo", "partitions"}) {
        INFO(path);
        CHECK(agent.run("cat /proc/" + std::string(path) + " 2>/dev/null | wc -c").output == "0\n");
    }
    CHECK(agent.run("cat /proc/meminfo | wc -l").output != "0\n");
    CHECK(agent.run("hostname").output == "sandbox\n");
    CHECK(agent.run("umask").output == "0022\n");
    CHECK(agent.run("cat /sys/kernel/notes 2>/dev/null | wc -c").output == "0\n");
    host.runtime().destroy(id);
}

TEST_CASE("oci: one sandbox cannot take the inotify instances of all", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const SandboxId other = host.create();
    SmallAgent agent(host.runtime().connect(id));
    SmallAgent neighbour(host.runtime().connect(other));
    const auto watches = pairs(agent.run("probe watches").output);
    CHECK(std::stoi(watches.at("made")) <= 16);
    CHECK(watches.at("error") == "24");
    CHECK(std::stoi(pairs(neighbour.run("probe watches").output).at("made")) >= 10);
    CHECK(agent
              .run("cat /proc/sys/user/max_user_namespaces /proc/sys/user/max_net_namespaces "
                   "/proc/sys/user/max_inotify_watches")
              .output == "0\n0\n4096\n");
    host.runtime().destroy(id);
    host.runtime().destroy(other);
}

TEST_CASE("a private terminal works", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    auto made = pairs(agent.run("probe pty").output);
    CHECK(made["ptmx"] == "0");
    CHECK(made["unlock"] == "0");
    CHECK(made["name"] == "/dev/pts/0");
    CHECK(made["slave"] == "0");
    host.runtime().destroy(id);
}

TEST_CASE("memory beyond the limit ends the execution, not the agent", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const auto outcome = agent.run("exec probe memory");
    CHECK(outcome.signal() == 9);
    CHECK(agent.run("echo alive").output == "alive\n");
    CHECK(host.runtime().usage(id)->oom_kills >= 1);
    CHECK(host.runtime().usage(id)->memory_peak_bytes <= host.spec().limits.memory_bytes);
    host.runtime().destroy(id);
}

TEST_CASE("a tenant that lowers its score is ended before the agent all the same",
          "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const auto lowered = agent.run("echo 0 > /proc/self/oom_score_adj; exec probe memory");
    CHECK(lowered.signal() == 9);
    CHECK(agent.run("echo alive").output == "alive\n");
    const std::string after = agent
                                  .run(
                                      "echo 0 > /proc/$$/oom_score_adj; sleep 2.5; cat "
                                      "/proc/$$/oom_score_adj")
                                  .output;
    INFO(after);
    CHECK(std::stoi(after.substr(after.rfind('\n', after.size() - 2) + 1)) >= 900);
    host.runtime().destroy(id);
}

TEST_CASE("oci: the launcher keeps the capabilities that it lists, and hands on no more",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    std::uint64_t listed = 0;
    for (const int each : pool::launcher::capabilities()) listed |= 1ULL << each;
    const std::string ours = sys::readFile("/proc/self/status").value_or("");
    const std::uint64_t had = std::stoull(status(ours, "CapBnd"), nullptr, 16);
    const std::string text =
        sys::readFile("/proc/" + std::to_string(host.launcherPid()) + "/status").value_or("");
    for (const char* set : {"CapEff", "CapPrm", "CapBnd"}) {
        INFO(set);
        CHECK(std::stoull(status(text, set), nullptr, 16) == (listed & had));
    }
    CHECK(status(text, "CapInh") == kNoCaps);
    CHECK(status(text, "CapAmb") == kNoCaps);
    const std::string limits =
        sys::readFile("/proc/" + std::to_string(host.launcherPid()) + "/limits").value_or("");
    const std::size_t core = limits.find("Max core file size");
    REQUIRE(core != std::string::npos);
    std::istringstream numbers(limits.substr(core + 18));
    std::string soft;
    std::string hard;
    numbers >> soft >> hard;
    CHECK(soft == "0");
    CHECK(hard == "0");
}

TEST_CASE("oci: the shared image is not changed by a sandbox", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const std::string tree = host.names().rootfs() + "/" + host.spec().image_digest.substr(7);
    const auto before = sys::listDirectory(tree);
    struct stat first {};
    REQUIRE(::stat((tree + "/dev").c_str(), &first) == 0);
    const SandboxId id = host.create();
    SmallAgent(host.runtime().connect(id)).run("echo x > /dev/null");
    host.runtime().destroy(id);
    struct stat second {};
    REQUIRE(::stat((tree + "/dev").c_str(), &second) == 0);
    CHECK(sys::listDirectory(tree) == before);
    CHECK(first.st_mtim.tv_sec == second.st_mtim.tv_sec);
    CHECK(first.st_mtim.tv_nsec == second.st_mtim.tv_nsec);
    CHECK(sys::listDirectory(tree + "/dev").empty());
}

}  // namespace hearth::kernel_test
