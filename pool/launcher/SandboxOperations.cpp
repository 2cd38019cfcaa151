#include "pool/launcher/SandboxOperations.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "pool/isolation/OpenFiles.h"
#include "pool/isolation/SandboxIdentity.h"
#include "pool/launcher/DeviceTree.h"
#include "pool/launcher/DiskWorkspace.h"
#include "pool/launcher/OciBundle.h"
#include "pool/launcher/gpu/GpuRoot.h"
#include "pool/launcher/gpu/LockedMemory.h"
#include "pool/sys/CpuWeight.h"
#include "pool/sys/Files.h"
#include "pool/sys/Freezer.h"
#include "pool/sys/GroupLimits.h"
#include "pool/sys/LoopDevice.h"
#include "pool/sys/MemoryPeak.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Process.h"

namespace hearth::pool::launcher {
namespace {

constexpr auto kInitEnd = std::chrono::seconds(10);
constexpr auto kProcessesEnd = std::chrono::seconds(10);
constexpr auto kCgroupEnd = std::chrono::seconds(5);
/// For a sweep: others wait for it, and it comes again.
constexpr auto kSweptEnd = std::chrono::seconds(3);
/// A longer sweep reports the rest as left.
constexpr auto kSweepTime = std::chrono::seconds(120);
constexpr std::size_t kPage = 100;
/// Sockets may hold this part of the memory limit in addition to it.
constexpr std::uint64_t kSocketShare = 4;
constexpr std::uint64_t kLatestUnixMs = 1ULL << 50U;
constexpr std::string_view kSocketSuffix = ".sock";
constexpr std::string_view kImageSuffix = ".img";

// inotify is charged to the maker of the user namespace, the host's root: without limits inside,
// one sandbox would take the share of all. No sandbox needs namespaces in a namespace.
const std::vector<std::pair<std::string, std::string>>& userLimits() {
    static const std::vector<std::pair<std::string, std::string>> limits{
        {"max_inotify_instances", "16"}, {"max_inotify_watches", "4096"},
        {"max_fanotify_groups", "0"},    {"max_user_namespaces", "0"},
        {"max_pid_namespaces", "0"},     {"max_net_namespaces", "0"},
        {"max_mnt_namespaces", "0"},     {"max_ipc_namespaces", "0"},
        {"max_uts_namespaces", "0"},     {"max_cgroup_namespaces", "0"},
        {"max_time_namespaces", "0"}};
    return limits;
}

std::string withoutSuffix(const std::string& name, std::string_view suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string();
}

/// Mounts a shared tree as a file system of this sandbox alone. With the tree itself, all sandboxes
/// of an image would have the same inodes: one tenant's inotify would see another's opens, and
/// their locks would meet. The tree and `empty` lie beside each other.
void mountView(const char* source, const std::string& tree, const std::string& empty,
               const std::string& at) {
    const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
    const std::string parent = tree.substr(0, tree.rfind('/'));
    // Relative, because the tenant can read the options in its mountinfo.
    if (::chdir(parent.c_str()) != 0) throwErrno("chdir", parent);
    sys::mount(source, at, "overlay", MS_RDONLY, "lowerdir=" + name(tree) + ":" + name(empty));
    if (::chdir("/") != 0) throwErrno("chdir", "/");
}

/// The launcher's own facts about a sandbox.
void writeMeta(const std::string& bundle, const SandboxSpec& spec, const std::string& rootfs,
               const std::string& inside) {
    Json labels = Json::object();
    for (const auto& [key, value] : spec.labels) labels[key] = value;
    const Json meta{{"rootfs", rootfs},
                    {"labels", labels},
                    {"createdMs", toUnixMillis(SystemClock().wall())},
                    {"inside", inside}};
    sys::writeFile(bundle + "/meta.json", dumpJson(meta), 0600);
}

/// Lets only hooks that run as this sandbox's root read its bundle.
void openBundle(const std::string& bundle, std::uint32_t uid_first) {
    if (::chown(bundle.c_str(), 0, uid_first) != 0) throwErrno("chown", bundle);
    if (::chmod(bundle.c_str(), 0710) != 0) throwErrno("chmod", bundle);
    const std::string config = bundle + "/config.json";
    if (::chmod(config.c_str(), 0644) != 0) throwErrno("chmod", config);
}

bool before(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

SandboxOperations::SandboxOperations(const LauncherOptions& options, std::string inside,
                                     timespec since)
    : options_(options),
      names_(options.instance),
      runtime_(options.runtime, names_),
      leases_(names_.uidLeases(), names_.instance(), options.uid_base, options.uid_ranges),
      images_(options.instance.data_dir),
      layers_(names_.layers()),
      cgroups_(sys::Cgroups::detect()),
      inside_(std::move(inside)),
      since_(since) {}

std::string SandboxOperations::rootfsOf(const std::string& image, const std::string& digest) const {
    const std::optional<std::string> tree = images_.rootfs(digest);
    if (tree) return *tree;
    throw Error(ErrorCode::NotFound, "image \"" + image + "\" is not prepared")
        .hint("see `hearth image list`");
}

void SandboxOperations::create(const CreateRequest& request, int listen) {
    const SandboxId& id = request.id;
    const SandboxSpec& spec = request.spec;
    const std::string digest =
        spec.image_digest.empty() ? images_.digestOf(spec.image) : spec.image_digest;
    const std::string rootfs = rootfsOf(spec.image, digest);
    GpuParts gpu;
    if (!spec.gpus.empty()) gpu = gpuParts(cdi::CdiSpecs::read(options_.cdi).gpus(spec.gpus));
    const std::string bundle = names_.bundle(id);
    if (!sys::makeDirectory(bundle, 0700)) {
        throw Error(ErrorCode::Conflict, "the sandbox exists already");
    }
    try {
        writeMeta(bundle, spec, rootfs, inside_);
        rootfsOf(spec.image,
                 digest);  // from now on nobody removes it; just before, a collector might

        BundlePlaces places;
        places.id = id;
        places.rootfs = names_.rootView();
        places.image_facts = dumpJson(encodeFacts(images_.facts(digest)));
        places.inside = names_.insideView();
        places.devices = names_.devices();
        places.workspace = names_.mountPoint();
        places.cgroups_path = names_.cgroup(id);
        places.uid_first = leases_.lease(id);
        places.open_files = mostOpenFiles();
        places.gpu = std::move(gpu);
        sys::enterPrivateMounts();
        if (spec.gpus.empty()) {
            mountView("root", rootfs, names_.emptyTree(), names_.rootView());
        } else {
            places.locked_bytes = allowLockedMemory(spec.limits.memory_bytes);
            mountGpuRoot(places.gpu,
                         {rootfs, names_.rootScratch(), names_.rootView(), places.uid_first});
        }
        mountView("hearth", inside_, names_.emptyInside(), names_.insideView());
        mountDevices(names_.devices(), places.gpu.nodes, places.uid_first);
        if (!spec.layer.empty()) {
            mountView("layer", layers_.require(spec.layer), names_.emptyLayer(),
                      names_.layerView());
            places.layer = names_.layerView();
        }
        if (spec.storage == Storage::Disk) {
            mountDiskWorkspace(names_.storageImage(id), names_.mountPoint(),
                               spec.limits.workspace_bytes, places.uid_first + kTenantUid);
        }
        sys::writeFile(bundle + "/config.json", dumpJson(bundleConfig(spec, places)), 0600);
        if (!places.gpu.hooks.empty()) openBundle(bundle, places.uid_first);
        const pid_t pid = runtime_.create(id, listen);
        if (!spec.gpus.empty()) {
            sealMount(names_.rootView(), 0);
            sealMount(names_.devices(), MS_NOSUID | MS_NOEXEC);
        }
        sys::writeUserLimits(pid, userLimits());
        handGroup(id, spec);
        runtime_.start(id);
        if (!runtime_.alive(id)) throw std::runtime_error("the agent ended at once");
    } catch (...) {
        if (spec.storage == Storage::Disk) sys::unmount(names_.mountPoint());
        destroy(id);
        throw;
    }
}

void SandboxOperations::handGroup(const SandboxId& id, const SandboxSpec& spec) const {
    const std::string group = names_.cgroup(id);
    sys::boundSocketMemory(cgroups_, group, spec.limits.memory_bytes / kSocketShare);
    // The server itself changes the weight: an operation here would cost more than it gains.
    sys::CpuWeightFile(cgroups_, group).handTo(options_.server_uid);
    sys::Freezer(cgroups_, group).handTo(options_.server_uid);
    sys::MemoryPeak(cgroups_, group).handTo(options_.server_uid);
}

void SandboxOperations::killAll(const SandboxId& id, const ClaimPatience& patience) {
    // Kills the first process first: the kernel then ends all others of its pid namespace and lets
    // no new one begin, so not even a fork bomb is faster.
    const std::optional<OciCommand::State> state = runtime_.state(id);
    const sys::Freezer freezer(cgroups_, names_.cgroup(id));
    if (state && state->pid > 0) {
        const std::optional<sys::Process> init = sys::Process::open(state->pid);
        if (init && sys::processStartTime(state->pid) == state->start_time) {
            init->kill();
            freezer.thaw();  // in v1 a frozen process does not die; the signal stays pending
            if (!init->waitEnd(patience.init)) throw std::runtime_error("a sandbox does not end");
        }
    }
    freezer.thaw();
    if (!cgroups_.killAll(names_.cgroup(id), patience.processes)) {
        throw std::runtime_error("processes of a sandbox do not end");
    }
}

void SandboxOperations::runLastHooks(const SandboxId& id) const {
    if (!runtime_.state(id)) return;
    const Json config =
        Json::parse(sys::readFile(names_.bundle(id) + "/config.json").value_or(""), nullptr, false);
    if (!config.is_object() || !config.contains("hooks") ||
        !config["hooks"].contains(cdi::kHookPoints.of(cdi::HookPoint::Poststop))) {
        return;
    }
    try {
        runtime_.forget(id);
    } catch (const std::exception& e) {
        // The sandbox is removed all the same, or a failing hook would keep its device for ever.
        metrics::Log().warn("sandbox_hook_failed", {{"sandbox", id}, {"error", e.what()}});
    }
}

void SandboxOperations::destroy(const SandboxId& id) {
    destroy(id, {kInitEnd, kProcessesEnd, kCgroupEnd});
}

void SandboxOperations::destroy(const SandboxId& id, const ClaimPatience& patience) {
    killAll(id, patience);
    if (!cgroups_.remove(names_.cgroup(id), patience.group)) {
        throw std::runtime_error("a control group of a sandbox stays busy");
    }
    runLastHooks(id);
    // No process is left, so `runc delete` would do no more than this.
    sys::removeTree(names_.runtimeState(id));
    removeDiskWorkspace(names_.storageImage(id));
    sys::removeFile(names_.socket(id));
    leases_.release(id);
    sys::removeTree(names_.bundle(id));  // last: while it is there, a list shows the sandbox
}

std::optional<LimitInUse> SandboxOperations::narrow(const NarrowRequest& request) const {
    const std::optional<sys::LimitInUse> in_use =
        sys::lowerLimits(cgroups_, names_.cgroup(request.id),
                         {request.milli_cpu, request.memory_bytes, request.pids});
    if (!in_use) return std::nullopt;
    const bool memory = in_use->of == sys::LimitInUse::Of::Memory;
    return LimitInUse{memory ? LimitInUse::Of::Memory : LimitInUse::Of::Processes, in_use->used};
}

std::set<SandboxId> SandboxOperations::known(bool old_sockets_only) {
    std::set<SandboxId> ids;
    const auto add = [&](const std::optional<SandboxId>& id) {
        if (id && isId(*id, "sb_")) ids.insert(*id);
    };
    for (const std::string& name : sys::listDirectory(names_.sandboxes())) add(name);
    for (const std::string& name : sys::listDirectory(names_.runtimeRoot())) add(names_.idOf(name));
    for (const std::string& name : cgroups_.children(names_.cgroupParent())) add(names_.idOf(name));
    for (const std::string& name : sys::listDirectory(names_.storage())) {
        add(names_.idOf(withoutSuffix(name, kImageSuffix)));
    }
    for (const SandboxId& id : leases_.holders()) add(id);
    for (const std::string& name : sys::listDirectory(names_.sockets())) {
        struct stat status {};
        if (old_sockets_only && ::lstat((names_.sockets() + "/" + name).c_str(), &status) == 0 &&
            !before(status.st_mtim, since_)) {
            continue;
        }
        add(withoutSuffix(name, kSocketSuffix));
    }
    return ids;
}

bool SandboxOperations::alive(const SandboxId& id) const {
    if (runtime_.state(id)) return runtime_.alive(id);
    // The program's state is incomplete, lost or not written yet: then the kernel knows. Without
    // its first process nothing of a sandbox runs.
    return !cgroups_.processes(names_.cgroup(id)).empty();
}

Found SandboxOperations::describe(const SandboxId& id) {
    // An unreadable entry proves nothing about its sandbox or others: its agent is asked.
    Found found;
    found.id = id;
    found.alive = true;
    try {
        found.alive = alive(id);
        const Json meta = Json::parse(sys::readFile(names_.bundle(id) + "/meta.json").value_or(""),
                                      nullptr, false);
        if (!meta.is_object() || !meta.contains("labels") || !meta.contains("createdMs")) {
            return found;
        }
        if (const Json& created = meta["createdMs"]; created.is_number_unsigned()) {
            found.created_unix_ms =
                static_cast<std::int64_t>(std::min(created.get<std::uint64_t>(), kLatestUnixMs));
        }
        found.labels = meta["labels"].get<std::map<std::string, std::string>>();
    } catch (const std::exception&) {
        found.labels.clear();
    }
    return found;
}

std::optional<Found> SandboxOperations::find(const SandboxId& id) {
    const auto there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
    const bool known = there(names_.bundle(id)) || there(names_.runtimeState(id)) ||
                       cgroups_.exists(names_.cgroup(id)) || there(names_.storageImage(id)) ||
                       leases_.holds(id) || there(names_.socket(id));
    if (!known) return std::nullopt;
    return describe(id);
}

std::vector<Found> SandboxOperations::list(const ListRequest& request, bool& more) {
    const std::set<SandboxId> ids = known(false);
    std::vector<Found> page;
    auto next = ids.upper_bound(request.after);
    for (; next != ids.end() && page.size() < kPage; ++next) {
        page.push_back(describe(*next));
        if (request.count_files) page.back().open_files = openFilesOf(*next);
    }
    more = next != ids.end();
    return page;
}

std::uint64_t SandboxOperations::openFilesOf(const SandboxId& id) const {
    std::uint64_t files = 0;
    for (const pid_t pid : cgroups_.processes(names_.cgroup(id))) files += sys::openFiles(pid);
    return files;
}

std::optional<SandboxId> SandboxOperations::holderOf(const sys::LoopInUse& loop) const {
    if (!loop.backing.starts_with(names_.storage() + "/")) return std::nullopt;
    const std::string file = loop.backing.substr(names_.storage().size() + 1);
    return names_.idOf(withoutSuffix(file, kImageSuffix));
}

std::set<SandboxId> SandboxOperations::present() {
    std::set<SandboxId> ids = known(true);
    // Finds workspaces without any name: their operation was killed between mount and unlink.
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        if (const std::optional<SandboxId> id = holderOf(loop)) ids.insert(*id);
    }
    return ids;
}

std::vector<Leftover> SandboxOperations::sweep(const std::set<SandboxId>& gone) {
    const auto end = std::chrono::steady_clock::now() + kSweepTime;
    std::vector<Leftover> leftovers;
    for (const SandboxId& id : gone) {
        if (std::chrono::steady_clock::now() > end) {
            leftovers.push_back({id, "there was no time left for it"});
            continue;
        }
        try {
            destroy(id, {kSweptEnd, kSweptEnd, kSweptEnd});
        } catch (const std::exception& e) {
            leftovers.push_back({id, e.what()});  // the others must be removed all the same
        }
    }
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        const std::optional<SandboxId> id = holderOf(loop);
        if (!id || !gone.contains(*id)) continue;
        try {
            sys::releaseLoop(loop.device);
        } catch (const std::exception& e) {
            leftovers.push_back({*id, e.what()});
        }
    }
    return leftovers;
}

std::set<std::string> SandboxOperations::insideInUse() {
    std::set<std::string> used;
    for (const std::string& name : sys::listDirectory(names_.sandboxes())) {
        const Json meta =
            Json::parse(sys::readFile(names_.sandboxes() + "/" + name + "/meta.json").value_or(""),
                        nullptr, false);
        if (meta.is_object() && meta.contains("inside") && meta["inside"].is_string()) {
            used.insert(meta["inside"].get<std::string>());
        }
    }
    return used;
}

}  // namespace hearth::pool::launcher
