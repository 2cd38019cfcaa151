#include "pool/launcher/Sandboxes.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "pool/launcher/BundleConfig.h"
#include "pool/launcher/DiskWorkspace.h"
#include "pool/sys/CpuWeight.h"
#include "pool/sys/Files.h"
#include "pool/sys/GroupLimits.h"
#include "pool/sys/LoopDevice.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Process.h"

namespace hearth::pool::launcher {
namespace {

constexpr auto kInitEnd = std::chrono::seconds(10);
constexpr auto kProcessesEnd = std::chrono::seconds(10);
constexpr auto kCgroupEnd = std::chrono::seconds(5);
constexpr std::size_t kPage = 100;
constexpr std::string_view kSocketSuffix = ".sock";
constexpr std::string_view kImageSuffix = ".img";

// inotify is charged to whoever made the user namespace, the host's root: without limits inside,
// one sandbox would take what all share. Nobody needs namespaces in a namespace.
const std::vector<std::pair<std::string, std::string>>& userLimits() {
    static const std::vector<std::pair<std::string, std::string>> kLimits{
        {"max_inotify_instances", "16"}, {"max_inotify_watches", "4096"},
        {"max_fanotify_groups", "0"},    {"max_user_namespaces", "0"},
        {"max_pid_namespaces", "0"},     {"max_net_namespaces", "0"},
        {"max_mnt_namespaces", "0"},     {"max_ipc_namespaces", "0"},
        {"max_uts_namespaces", "0"},     {"max_cgroup_namespaces", "0"},
        {"max_time_namespaces", "0"}};
    return kLimits;
}

std::string withoutSuffix(const std::string& name, std::string_view suffix) {
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string();
}

/// A shared tree as a file system of this sandbox alone. With the tree itself, all sandboxes of
/// an image had the same inodes: one tenant's inotify saw what another opened, and their locks met.
/// The tree and `empty` lie beside each other.
void mountView(const char* source, const std::string& tree, const std::string& empty,
               const std::string& at) {
    const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
    const std::string parent = tree.substr(0, tree.rfind('/'));
    // Relative, as the tenant can read the options in its mountinfo.
    if (::chdir(parent.c_str()) != 0) throwErrno("chdir", parent);
    sys::mount(source, at, "overlay", MS_RDONLY, "lowerdir=" + name(tree) + ":" + name(empty));
    if (::chdir("/") != 0) throwErrno("chdir", "/");
}

bool before(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

}  // namespace

Sandboxes::Sandboxes(const LauncherOptions& options, std::string inside, timespec since)
    : options_(options),
      names_(options.instance),
      runtime_(options.runtime, names_),
      leases_(names_.uidLeases(), names_.instance(), options.uid_base, options.uid_ranges),
      images_(options.instance.data_dir),
      layers_(names_.layers()),
      cgroups_(sys::Cgroups::detect()),
      inside_(std::move(inside)),
      since_(since) {}

std::string Sandboxes::rootfsOf(const std::string& image, const std::string& digest) const {
    const std::optional<std::string> tree = images_.rootfs(digest);
    if (tree) return *tree;
    throw Error(ErrorCode::NotFound, "image \"" + image + "\" is not prepared")
        .hint("see `hearth image list`");
}

void Sandboxes::create(const CreateRequest& request, int listen) {
    const SandboxId& id = request.id;
    const SandboxSpec& spec = request.spec;
    const std::string digest =
        spec.image_digest.empty() ? images_.digestOf(spec.image) : spec.image_digest;
    const std::string rootfs = rootfsOf(spec.image, digest);
    const std::string bundle = names_.bundle(id);
    if (!sys::makeDirectory(bundle, 0700)) {
        throw Error(ErrorCode::Conflict, "the sandbox exists already");
    }
    try {
        Json labels = Json::object();
        for (const auto& [key, value] : spec.labels) labels[key] = value;
        const Json meta{{"rootfs", rootfs},
                        {"labels", labels},
                        {"createdMs", toUnixMillis(SystemClock().wall())},
                        {"inside", inside_}};
        sys::writeFile(bundle + "/meta.json", dumpJson(meta), 0600);
        rootfsOf(spec.image,
                 digest);  // from now on nobody takes it away; just before, someone might have

        BundlePlaces places;
        places.id = id;
        places.rootfs = names_.rootView();
        places.image_facts = dumpJson(encodeFacts(images_.facts(digest)));
        places.inside = inside_;
        places.workspace = names_.mountPoint();
        places.cgroups_path = names_.cgroup(id);
        places.uid_first = leases_.lease(id);
        sys::enterPrivateMounts();
        mountView("root", rootfs, names_.emptyTree(), names_.rootView());
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
        const pid_t pid = runtime_.create(id, listen);
        sys::writeUserLimits(pid, userLimits());
        // The server weighs it by itself: an operation of ours would cost more than it gains.
        sys::CpuWeightFile(cgroups_, names_.cgroup(id)).handTo(options_.server_uid);
        runtime_.start(id);
        if (!runtime_.alive(id)) throw std::runtime_error("the agent ended at once");
    } catch (...) {
        if (spec.storage == Storage::Disk) sys::unmount(names_.mountPoint());
        destroy(id);
        throw;
    }
}

void Sandboxes::killAll(const SandboxId& id) {
    // The first process first: the kernel then ends all others of its pid namespace and lets no
    // new one begin, so that not even a fork bomb outruns it.
    const std::optional<OciCommand::State> state = runtime_.state(id);
    if (state && state->pid > 0) {
        const std::optional<sys::Process> init = sys::Process::open(state->pid);
        if (init && sys::processStartTime(state->pid) == state->start_time) {
            init->kill();
            if (!init->waitEnd(kInitEnd)) throw std::runtime_error("a sandbox does not end");
        }
    }
    if (!cgroups_.killAll(names_.cgroup(id), kProcessesEnd)) {
        throw std::runtime_error("processes of a sandbox do not end");
    }
}

void Sandboxes::destroy(const SandboxId& id) {
    killAll(id);
    if (!cgroups_.remove(names_.cgroup(id), kCgroupEnd)) {
        throw std::runtime_error("a control group of a sandbox stays busy");
    }
    // No process is left: `runc delete` would find nothing to do but this.
    sys::removeTree(names_.runtimeState(id));
    removeDiskWorkspace(names_.storageImage(id));
    sys::removeFile(names_.socket(id));
    leases_.release(id);
    sys::removeTree(names_.bundle(id));  // last: while it is there, a list shows the sandbox
}

std::optional<LimitInUse> Sandboxes::narrow(const NarrowRequest& request) const {
    const std::optional<sys::LimitInUse> in_use =
        sys::lowerLimits(cgroups_, names_.cgroup(request.id),
                         {request.milli_cpu, request.memory_bytes, request.pids});
    if (!in_use) return std::nullopt;
    const bool memory = in_use->of == sys::LimitInUse::Of::Memory;
    return LimitInUse{memory ? LimitInUse::Of::Memory : LimitInUse::Of::Processes, in_use->used};
}

std::set<SandboxId> Sandboxes::known(bool old_sockets_only) {
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

std::vector<Found> Sandboxes::list(const std::string& after, bool& more) {
    const std::set<SandboxId> ids = known(false);
    std::vector<Found> page;
    auto next = ids.upper_bound(after);
    for (; next != ids.end() && page.size() < kPage; ++next) {
        Found found{*next, runtime_.alive(*next), {}, 0};
        const Json meta = Json::parse(
            sys::readFile(names_.bundle(*next) + "/meta.json").value_or(""), nullptr, false);
        if (meta.is_object() && meta.contains("labels") && meta.contains("createdMs")) {
            for (const auto& [key, value] : meta["labels"].items()) {
                found.labels.emplace(key, value.get<std::string>());
            }
            found.created_unix_ms = meta["createdMs"].get<std::int64_t>();
        }
        page.push_back(std::move(found));
    }
    more = next != ids.end();
    return page;
}

void Sandboxes::sweep(const std::set<SandboxId>& keep) {
    std::string failure;
    for (const SandboxId& id : known(true)) {
        if (keep.contains(id)) continue;
        try {
            destroy(id);
        } catch (const std::exception& e) {
            failure = e.what();  // the others must go all the same
        }
    }
    // Workspaces whose every name is gone and whose process was killed between mount and unlink.
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        if (!loop.backing.starts_with(names_.storage() + "/")) continue;
        const std::string file = loop.backing.substr(names_.storage().size() + 1);
        const std::optional<SandboxId> id = names_.idOf(withoutSuffix(file, kImageSuffix));
        if (!id || keep.contains(*id)) continue;
        sys::releaseLoop(loop.device);
    }
    if (!failure.empty()) throw std::runtime_error("sweep: " + failure);
}

std::set<std::string> Sandboxes::insideInUse() {
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
