#include "pool/launcher/OciBundle.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pool/isolation/SandboxIdentity.h"
#include "pool/isolation/TenantFilter.h"
#include "pool/launcher/Inodes.h"
#include "pool/sys/CpuWeight.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::uint64_t kCpuPeriod = 100'000;  // microseconds
constexpr std::uint64_t kCpuShares = sys::kOrdinaryCpuShares;
constexpr std::uint64_t kMiB = 1ULL << 20U;
Json rlimitJson(const char* type, std::uint64_t soft, std::uint64_t hard) {
    return {{"type", type}, {"hard", hard}, {"soft", soft}};
}

Json process(const SandboxSpec& spec, const BundlePlaces& places) {
    // The agent changes identity and ends tenants; tenants get none of these.
    const Json caps = Json::array({"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SETPCAP"});
    Json env = Json::array({"PATH=/usr/local/bin:/usr/bin:/bin", "HEARTH_SANDBOX=" + places.id,
                            "HEARTH_CPUS=" + std::to_string(wholeCpus(spec.limits))});
    // Not as variables of their own: the agent decides which its executions get.
    if (!places.image_facts.empty()) env.push_back("HEARTH_IMAGE=" + places.image_facts);
    if (!places.layer.empty()) env.push_back(std::string("HEARTH_LAYER=") + kLayerPlace);
    if (!places.gpu.env.empty()) {
        env.push_back("HEARTH_GPU=" + dumpJson(Json{{"env", places.gpu.env}}));
    }
    return {{"terminal", false},
            {"user", {{"uid", 0}, {"gid", 0}, {"umask", 077}}},
            {"args", Json::array({"/.hearth/agent"})},
            {"env", std::move(env)},
            {"cwd", "/"},
            {"capabilities",
             {{"bounding", caps},
              {"effective", caps},
              {"permitted", caps},
              {"inheritable", Json::array()},
              {"ambient", Json::array()}}},
            // No NPROC: the pids cgroup is the limit and counts the refusals.
            {"rlimits",
             Json::array({rlimitJson("RLIMIT_NOFILE", kOpenFiles, places.open_files),
                          rlimitJson("RLIMIT_CORE", 0, 0),
                          rlimitJson("RLIMIT_MEMLOCK", places.locked_bytes, places.locked_bytes),
                          rlimitJson("RLIMIT_MSGQUEUE", 65'536, 65'536),
                          rlimitJson("RLIMIT_SIGPENDING", 256, 256),
                          rlimitJson("RLIMIT_STACK", 8 * kMiB, 16 * kMiB)})},
            {"noNewPrivileges", true},
            {"oomScoreAdj", 900}};
}

Json mount(const char* where, const char* type, const std::string& source, Json options) {
    return {{"destination", where},
            {"type", type},
            {"source", source},
            {"options", std::move(options)}};
}

Json workspaceMount(const SandboxSpec& spec, const BundlePlaces& places) {
    if (spec.storage == Storage::Disk) {
        return mount("/workspace", "bind", places.workspace,
                     Json::array({"bind", "rprivate", "nosuid", "nodev"}));
    }
    const std::uint64_t bytes = spec.limits.workspace_bytes;
    const std::string uid = std::to_string(kTenantUid);
    return mount(
        "/workspace", "tmpfs", "tmpfs",
        Json::array({"nosuid", "nodev", "mode=0700", "size=" + std::to_string(bytes),
                     "nr_inodes=" + std::to_string(inodesFor(bytes)), "uid=" + uid, "gid=" + uid}));
}

Json gpuMount(const cdi::CdiMount& mount) {
    Json options = Json::array({mount.recursive ? "rbind" : "bind", "rprivate", "nosuid", "nodev"});
    if (!mount.writable) options.push_back("ro");
    if (!mount.writable && mount.recursive) options.push_back("rro");
    if (!mount.executable) options.push_back("noexec");
    return {{"destination", mount.container_path},
            {"type", "bind"},
            {"source", mount.host_path},
            {"options", std::move(options)}};
}

Json mounts(const SandboxSpec& spec, const BundlePlaces& places) {
    Json dev = Json::array({"bind", "rprivate", "nosuid", "noexec"});
    // The hooks of GPUs may add links; the launcher seals the folders that they wrote to.
    if (places.gpu.hooks.empty()) dev.push_back("ro");
    const std::uint64_t tmp = spec.limits.tmp_bytes;
    const std::uint64_t run = runBytes(spec.limits);
    Json list = Json::array(
        {mount("/proc", "proc", "proc", Json::array({"nosuid", "nodev", "noexec"})),
         // Holds only the next mount: the machine's own /sys tells of its hardware and of others.
         mount("/sys", "tmpfs", "tmpfs",
               Json::array(
                   {"nosuid", "noexec", "nodev", "ro", "mode=0755", "size=64k", "nr_inodes=256"})),
         // Programs size heaps and pools by it. With a namespace of control groups, it shows the
         // sandbox's own group as the root, and no other.
         mount("/sys/fs/cgroup", "cgroup", "cgroup",
               Json::array({"nosuid", "noexec", "nodev", "ro"})),
         // In a user namespace a runtime cannot make device nodes and would mount the host's, whose
         // inodes all sandboxes share: watches and locks on them would meet.
         mount("/dev", "bind", places.devices, std::move(dev)),
         mount("/dev/pts", "devpts", "devpts",
               Json::array({"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620",
                            "gid=5", "max=16"})),
         mount("/dev/shm", "tmpfs", "shm",
               Json::array({"nosuid", "noexec", "nodev", "mode=1777",
                            "size=" + std::to_string(shmBytes(spec.limits)), "nr_inodes=1024"})),
         mount("/tmp", "tmpfs", "tmpfs",
               Json::array({"nosuid", "nodev", "mode=1777", "size=" + std::to_string(tmp),
                            "nr_inodes=" + std::to_string(inodesFor(tmp))})),
         workspaceMount(spec, places),
         mount("/.hearth", "bind", places.inside,
               Json::array({"bind", "ro", "rprivate", "nosuid", "nodev"})),
         // The agent's, where tenants cannot make anything; what they compiled runs there.
         mount(kRunPlace, "tmpfs", "tmpfs",
               Json::array({"nosuid", "nodev", "mode=0755", "size=" + std::to_string(run),
                            "nr_inodes=" + std::to_string(inodesFor(run))}))});
    if (!places.layer.empty()) {
        list.push_back(mount(kLayerPlace, "bind", places.layer,
                             Json::array({"bind", "ro", "rprivate", "nosuid", "nodev"})));
    }
    for (const cdi::CdiMount& each : places.gpu.mounts) list.push_back(gpuMount(each));
    return list;
}

Json device(const char* type, int major, int minor) {
    Json rule{{"allow", true}, {"type", type}, {"major", major}};
    if (minor >= 0) rule["minor"] = minor;
    rule["access"] = "rw";
    return rule;
}

Json devices(const std::vector<GpuNode>& gpus) {
    Json rules = Json::array({{{"allow", false}, {"access", "rwm"}},
                              device("c", 1, 3),  // null
                              device("c", 1, 5),  // zero
                              device("c", 1, 7),  // full
                              device("c", 1, 8),  // random
                              device("c", 1, 9),  // urandom
                              device("c", 5, 2),  // ptmx of the private devpts
                              device("c", 136, -1)});
    for (const GpuNode& node : gpus) {
        Json rule = device("c", static_cast<int>(node.major), static_cast<int>(node.minor));
        rule["access"] = node.access;
        rules.push_back(std::move(rule));
    }
    return rules;
}

/// Groups the hooks by the point where they run, as the runtime expects.
Json hooks(const std::vector<cdi::CdiHook>& hooks) {
    Json all = Json::object();
    for (const cdi::CdiHook& hook : hooks) {
        Json entry{{"path", hook.path}, {"args", hook.args}, {"env", hook.env}};
        if (hook.timeout_s) entry["timeout"] = *hook.timeout_s;
        all[cdi::kHookPoints.of(hook.point)].push_back(std::move(entry));
    }
    return all;
}

Json resources(const SandboxLimits& limits, const std::vector<GpuNode>& gpus) {
    const std::uint64_t quota = std::max<std::uint64_t>(limits.milli_cpu * kCpuPeriod / 1000, 1000);
    return {{"devices", devices(gpus)},
            // The limit with swap equals the limit: nothing of a tenant is ever swapped.
            {"memory", {{"limit", limits.memory_bytes}, {"swap", limits.memory_bytes}}},
            {"cpu", {{"shares", kCpuShares}, {"quota", quota}, {"period", kCpuPeriod}}},
            {"pids", {{"limit", limits.pids}}}};
}

Json namespaces() {
    Json list = Json::array();
    for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup", "user"}) {
        list.push_back({{"type", type}});
    }
    return list;
}

}  // namespace

Json bundleConfig(const SandboxSpec& spec, const BundlePlaces& places) {
    const Json ids =
        Json::array({{{"containerID", 0}, {"hostID", places.uid_first}, {"size", kRangeSize}}});
    Json config{{"ociVersion", "1.0.2"},
                {"process", process(spec, places)},
                {"root", {{"path", places.rootfs}, {"readonly", true}}},
                {"hostname", "sandbox"},
                {"mounts", mounts(spec, places)},
                {"linux",
                 {{"namespaces", namespaces()},
                  {"uidMappings", ids},
                  {"gidMappings", ids},
                  {"cgroupsPath", places.cgroups_path},
                  {"resources", resources(spec.limits, places.gpu.nodes)},
                  {"sysctl",
                   {{"kernel.shm_rmid_forced", "1"},
                    {"kernel.shmmax", "67108864"},
                    {"kernel.shmall", "16384"},
                    {"kernel.msgmni", "16"},
                    {"kernel.sem", "32 128 32 16"},
                    {"net.ipv4.ping_group_range", "1 0"}}},
                  {"maskedPaths", maskedPaths(spec.gpus)},
                  {"readonlyPaths", readonlyPaths()},
                  {"seccomp", seccomp::ociFilter()}}}};
    if (!places.gpu.hooks.empty()) config["hooks"] = hooks(places.gpu.hooks);
    return config;
}

}  // namespace hearth::pool::launcher
