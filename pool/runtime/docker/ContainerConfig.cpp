#include "pool/runtime/docker/ContainerConfig.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "pool/image/ImageFacts.h"
#include "pool/isolation/SandboxIdentity.h"
#include "pool/isolation/TenantFilter.h"

namespace hearth::pool::docker {
namespace {

constexpr std::uint64_t kCpuPeriod = 100'000;  // microseconds
constexpr std::uint64_t kCpuShares = 128;
constexpr std::uint64_t kMiB = 1ULL << 20U;
// As in ext4: one inode per 16 KiB.
constexpr std::uint64_t kBytesPerInode = 16'384;
constexpr std::uint64_t kFewestInodes = 1024;
constexpr int kOomScore = 900;  // the agent sets a higher one for its children

/// Docker's own options come first, noexec among them; the last one counts, so exec is set.
std::string tmpfs(std::uint64_t bytes, const std::string& more) {
    return "rw,exec,nosuid,nodev,size=" + std::to_string(bytes) +
           ",nr_inodes=" + std::to_string(std::max(bytes / kBytesPerInode, kFewestInodes)) + "," +
           more;
}

Json ulimit(const char* name, std::uint64_t soft, std::uint64_t hard) {
    return {{"Name", name}, {"Soft", soft}, {"Hard", hard}};
}

Json ulimits(const SandboxSpec& spec, const ContainerPlaces& places) {
    // A GPU's driver locks the memory that it exchanges with the device.
    const std::uint64_t locked = spec.gpus.empty() ? 65'536 : spec.limits.memory_bytes;
    return Json::array({ulimit("nofile", kOpenFiles, places.open_files), ulimit("core", 0, 0),
                        ulimit("memlock", locked, locked), ulimit("msgqueue", 65'536, 65'536),
                        ulimit("sigpending", 256, 256), ulimit("stack", 8 * kMiB, 16 * kMiB)});
}

Json mount(const std::string& source, const char* target) {
    return {{"Type", "bind"},
            {"Source", source},
            {"Target", target},
            {"ReadOnly", true},
            {"BindOptions", {{"Propagation", "rprivate"}}}};
}

bool isOurs(const std::string& path) {
    for (const std::string_view ours :
         {"/proc", "/dev", "/sys", "/tmp", "/workspace", "/.hearth"}) {
        if (path == ours || (path.starts_with(ours) && path[ours.size()] == '/')) return true;
    }
    return path.size() < 2 || path.front() != '/';
}

/// For a daemon that does not see this machine's files. In the folder `start` only root can create
/// files: relays are root, and the tenant is not.
Json copiedMounts(const std::string& volume) {
    return Json::array({{{"Type", "volume"},
                         {"Source", volume},
                         {"Target", "/.hearth"},
                         {"ReadOnly", true},
                         {"VolumeOptions", {{"NoCopy", true}}}},
                        {{"Type", "tmpfs"},
                         {"Target", "/.hearth/start"},
                         {"TmpfsOptions", {{"SizeBytes", 65'536}, {"Mode", 0755}}}}});
}

Json mounts(const ContainerPlaces& places) {
    Json list =
        places.volume.empty()
            ? Json::array({mount(places.inside, "/.hearth"), mount(places.start, "/.hearth/start")})
            : copiedMounts(places.volume);
    if (!places.layer.empty()) list.push_back(mount(places.layer, kLayerPlace));
    for (const std::string& path : places.volumes) {
        if (isOurs(path)) continue;
        list.push_back({{"Type", "tmpfs"},
                        {"Target", path},
                        {"ReadOnly", true},
                        {"TmpfsOptions", {{"SizeBytes", 4096}, {"Mode", 0555}}}});
    }
    return list;
}

/// Hides all of /sys but the container's own control group, as the embedded runtime does. A mask
/// of /sys itself would hide the group too, and a daemon mounts nothing above its own mounts.
Json hiddenPaths(const std::vector<std::string>& gpus) {
    Json paths = launcher::maskedPaths(gpus);
    for (const char* name :
         {"block", "bus", "class", "dev", "devices", "hypervisor", "module", "power"}) {
        paths.push_back(std::string("/sys/") + name);
    }
    for (const char* name :
         {"bcachefs", "bpf",     "btrfs",   "cachefiles", "ecryptfs", "erofs", "ext4",
          "f2fs",     "fuse",    "gfs2",    "nfs",        "nilfs2",   "ocfs2", "orangefs",
          "pstore",   "resctrl", "selinux", "smackfs",    "xfs",      "zfs"}) {
        paths.push_back(std::string("/sys/fs/") + name);
    }
    return paths;
}

Json labels(const SandboxSpec& spec, const ContainerPlaces& places) {
    Json all{{kInstanceLabel, places.instance},
             {kSandboxLabel, places.id},
             {kCreatedLabel, std::to_string(places.created_unix_ms)},
             {kInsideLabel, places.inside.substr(places.inside.rfind('/') + 1)}};
    for (const auto& [key, value] : spec.labels) all[kOwnLabel + key] = value;
    return all;
}

/// Without "compute", the driver's CUDA libraries would come only if the image requests them.
Json deviceRequest(const std::vector<std::string>& gpus) {
    return {{"Driver", "nvidia"},
            {"DeviceIDs", gpus},
            {"Capabilities", Json::array({Json::array({"gpu", "compute", "utility"})})}};
}

Json hostConfig(const SandboxSpec& spec, const ContainerPlaces& places) {
    const SandboxLimits& limits = spec.limits;
    const std::string uid = std::to_string(kUid);
    const std::string seccomp = dumpJson(launcher::seccomp::ociFilter());
    Json config{
        {"NetworkMode", "none"},
        {"ReadonlyRootfs", true},
        {"Privileged", false},
        {"PublishAllPorts", false},
        {"CapDrop", Json::array({"ALL"})},
        {"SecurityOpt", Json::array({"no-new-privileges:true", "seccomp=" + seccomp})},
        {"MaskedPaths", hiddenPaths(spec.gpus)},
        {"ReadonlyPaths", launcher::readonlyPaths()},
        {"CpuShares", kCpuShares},
        {"OomScoreAdj", kOomScore},
        {"Ulimits", ulimits(spec, places)},
        {"ShmSize", shmBytes(limits)},
        {"Tmpfs",
         {{"/tmp", tmpfs(limits.tmp_bytes, "mode=1777")},
          {kRunPlace, tmpfs(runBytes(limits), "mode=0755,uid=" + uid + ",gid=" + uid)},
          {"/workspace", tmpfs(limits.workspace_bytes, "mode=0700,uid=" + uid + ",gid=" + uid)}}},
        {"Mounts", mounts(places)},
        {"IpcMode", "private"},
        {"CgroupnsMode", "private"},
        {"PidMode", ""},
        {"UTSMode", ""},
        {"UsernsMode", ""},  // the daemon's, if set
        {"Init", false},     // else the daemon's own init would be the first process
        {"AutoRemove", false},
        {"RestartPolicy", {{"Name", "no"}}},
        {"LogConfig", {{"Type", "none"}}},
        {"Sysctls",
         {{"kernel.shm_rmid_forced", "1"},
          {"kernel.shmmax", "67108864"},
          {"kernel.shmall", "16384"},
          {"kernel.msgmni", "16"},
          {"kernel.sem", "32 128 32 16"},
          {"net.ipv4.ping_group_range", "1 0"}}}};
    if (!spec.gpus.empty()) config["DeviceRequests"] = Json::array({deviceRequest(spec.gpus)});
    config.update(limitsUpdate(limits));
    return config;
}

/// The agent's environment. The image's variables come as data, for its executions. Only the path
/// on which the agent searches for interpreters comes from the image.
Json environment(const SandboxSpec& spec, const ContainerPlaces& places) {
    std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
    for (const std::string& variable : places.image_env) {
        if (variable.starts_with("PATH=/")) path = variable;
    }
    const Json brought{{"env", image::takeableEnv(places.image_env)},
                       {"workdir", places.image_workdir}};
    Json env = Json::array({path, "HEARTH_SANDBOX=" + places.id,
                            "HEARTH_CPUS=" + std::to_string(wholeCpus(spec.limits)),
                            "HEARTH_IMAGE=" + dumpJson(brought)});
    if (!places.layer.empty()) env.push_back(std::string("HEARTH_LAYER=") + kLayerPlace);
    // If NVIDIA's runtime is the daemon's default, an image could take all GPUs by its own setting.
    // For requested GPUs the daemon sets the variable.
    if (spec.gpus.empty()) env.push_back("NVIDIA_VISIBLE_DEVICES=void");
    return env;
}

}  // namespace

Json limitsUpdate(const SandboxLimits& limits) {
    return {{"PidsLimit", limits.pids},
            // Both limits are equal: a tenant's memory is never swapped.
            {"Memory", limits.memory_bytes},
            {"MemorySwap", limits.memory_bytes},
            {"CpuPeriod", kCpuPeriod},
            {"CpuQuota", std::max<std::uint64_t>(limits.milli_cpu * kCpuPeriod / 1000, 1000)}};
}

Json containerConfig(const SandboxSpec& spec, const ContainerPlaces& places) {
    const std::string user = std::to_string(kUid) + ":" + std::to_string(kUid);
    return {{"Image", places.image},
            {"Hostname", "sandbox"},
            {"Domainname", ""},
            {"User", user},
            {"Env", environment(spec, places)},
            // Neither the image's entrypoint nor its health check ever runs.
            {"Entrypoint", Json::array({"/.hearth/agent"})},
            {"Cmd", Json::array({"--receive", "/.hearth/start/socket"})},
            {"Healthcheck", {{"Test", Json::array({"NONE"})}}},
            {"WorkingDir", "/"},
            {"AttachStdin", false},
            {"AttachStdout", false},
            {"AttachStderr", false},
            {"OpenStdin", false},
            {"Tty", false},
            {"StopSignal", "SIGKILL"},
            {"Labels", labels(spec, places)},
            {"HostConfig", hostConfig(spec, places)}};
}

}  // namespace hearth::pool::docker
