#include "pool/runtime/docker/DockerRuntime.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/http/Url.h"
#include "pool/isolation/AgentFolder.h"
#include "pool/isolation/OpenFiles.h"
#include "pool/isolation/RuntimeAdvisories.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/RequireId.h"
#include "pool/runtime/docker/ContainerConfig.h"
#include "pool/runtime/docker/SocketHandover.h"
#include "pool/runtime/docker/engine/EngineJson.h"
#include "pool/runtime/docker/remote/AgentRelay.h"
#include "pool/sys/Files.h"

namespace hearth::pool {
namespace {

using docker::child;
using docker::count;
using docker::Gate;
using docker::text;

// The reconciler has as many workers for the first two; more do not make a daemon faster.
constexpr unsigned kCreates = 6;
constexpr unsigned kDestroys = 5;
constexpr unsigned kClaims = 4;
// A client may be waiting for the next three; the others belong to the reconciler.
constexpr auto kLook = std::chrono::seconds(5);
constexpr auto kNarrow = std::chrono::seconds(10);
constexpr auto kFreezeBy = std::chrono::seconds(5);
constexpr auto kMake = std::chrono::seconds(60);
constexpr auto kEnd = std::chrono::seconds(30);
constexpr auto kAgent = std::chrono::seconds(15);
constexpr auto kConnect = std::chrono::seconds(10);
constexpr auto kLateCreate = std::chrono::seconds(2);
constexpr std::string_view kSocketSuffix = ".sock";

TimePoint in(std::chrono::nanoseconds span) {
    return SystemClock().now() + span;
}

/// A container's status, as the Engine spells it; a frozen one is alive.
constexpr const char* kFrozen = "paused";
bool runs(const std::string& status) {
    return status == "running" || status == kFrozen;
}

/// Reads the labels of one of this server's containers.
SandboxInfo infoFrom(const Json& labels, const std::string& status) {
    SandboxInfo info;
    info.id = text(labels, docker::kSandboxLabel);
    info.alive = runs(status);
    info.frozen = status == kFrozen;
    const std::string created = text(labels, docker::kCreatedLabel);
    std::from_chars(created.data(), created.data() + created.size(), info.created_unix_ms);
    const std::string own = docker::kOwnLabel;
    for (const auto& [key, value] : labels.items()) {
        if (!key.starts_with(own) || !value.is_string()) continue;
        info.labels.emplace(key.substr(own.size()), value.get<std::string>());
    }
    return info;
}

}  // namespace

std::vector<std::string> DockerRuntime::directories(const Instance& instance) {
    const launcher::SandboxPaths names(instance);
    return {names.sockets(), instance.run_dir + "/start", instance.data_dir + "/docker",
            names.layers(), docker::DockerImages::recordsOf(instance.data_dir)};
}

DockerRuntime::DockerRuntime(const Instance& instance, std::unique_ptr<docker::EngineClient> engine,
                             const std::string& agent_path, docker::AgentMode mode)
    : names_(instance),
      start_(instance.run_dir + "/start"),
      owned_(std::move(engine)),
      engine_(*owned_),
      images_(engine_, instance.data_dir),
      use_(engine_),
      creates_(kCreates),
      destroys_(kDestroys),
      claims_(kClaims),
      layers_(names_.layers()),
      insides_(instance.data_dir + "/docker"),
      inside_(
          launcher::installInside(insides_, agent_path, launcher::seccomp::AgentIdentity::Tenant)),
      agent_(docker::chooseAgentMode(engine_, mode, {insides_, start_}, in(kMake))),
      volume_(engine_, instance.name, inside_) {
    layers_.removeUnfinished();
    readFacts();
}

ContainerRuntime::Started DockerRuntime::create(const SandboxId& id, const SandboxSpec& spec) {
    requireId(id);
    const TimePoint until = in(kMake);
    const std::string image_id =
        spec.image_digest.empty() ? resolveImage(spec.image) : spec.image_digest;
    const docker::EngineImage image = images_.inspect(image_id, until);
    const Gate::Place place = creates_.enter(until);
    Made made(*this, id);  // before any part of it exists: a sweep spares it
    docker::SocketHandover handover(startFolder(id));  // in any mode, a sweep's sign of a create
    if (::access(names_.socket(id).c_str(), F_OK) == 0) {
        throw Error(ErrorCode::Conflict, "the sandbox exists already");
    }
    const Fd listening = copies() ? Fd() : listenAt(names_.socket(id), 0600);
    const std::string name = names_.container(id);
    bool ours = false;
    try {
        docker::ContainerPlaces places{.id = id,
                                       .instance = names_.instance(),
                                       .image = image.id,
                                       .inside = inside_,
                                       .volume = copies() ? volume_.ready(until) : "",
                                       .layer = layerOf(spec),
                                       .start = startFolder(id),
                                       .created_unix_ms = toUnixMillis(SystemClock().wall()),
                                       .volumes = image.volumes,
                                       .image_env = image.env,
                                       .image_workdir = image.workdir,
                                       .open_files = launcher::mostOpenFiles()};
        ours = true;
        try {
            engine_.post("/containers/create?name=" + name, docker::containerConfig(spec, places),
                         until);
        } catch (const Error& e) {
            ours =
                e.code() != ErrorCode::Conflict;  // another instance's container of this name stays
            throw;
        }
        engine_.post("/containers/" + name + "/start", nullptr, until);
        open(id, handover, listening, std::min(until, in(kAgent)));
    } catch (...) {
        sys::removeFile(names_.socket(id));
        volume_.doubt();
        if (ours) removeContainer(id, in(kEnd));
        throw;
    }
    made.keep();
    return Started::Listening;
}

void DockerRuntime::open(const SandboxId& id, docker::SocketHandover& handover, const Fd& listening,
                         TimePoint until) {
    const auto alive = [&] {
        const std::string end = describeEnd(id, until);
        if (!end.empty()) throw std::runtime_error("the agent ended at once: " + end);
    };
    if (listening) return handover.give(listening.get(), until, alive);
    try {
        docker::startRelay(engine_, names_.container(id), "--open", until);
    } catch (const Error&) {
        alive();
        throw;
    }
}

std::string DockerRuntime::layerOf(const SandboxSpec& spec) {
    if (spec.layer.empty()) return {};
    layers();
    return layers_.require(spec.layer);
}

DockerRuntime::Made::Made(DockerRuntime& runtime, SandboxId id)
    : runtime_(runtime), id_(std::move(id)) {
    const MutexLock lock(runtime_.mutex_);
    if (!runtime_.made_.insert(id_).second) {
        throw Error(ErrorCode::Conflict, "the sandbox exists already");
    }
}

DockerRuntime::Made::~Made() {
    if (kept_) return;
    const MutexLock lock(runtime_.mutex_);
    runtime_.made_.erase(id_);
}

bool DockerRuntime::making() {
    const MutexLock lock(mutex_);
    return !made_.empty();
}

void DockerRuntime::removeUnusedVolumes(TimePoint until) {
    if (copies()) volume_.removeUnused([this] { return making(); }, until);
}

std::string DockerRuntime::describeEnd(const SandboxId& id, TimePoint until) {
    const auto found = engine_.find("/containers/" + names_.container(id) + "/json", until);
    if (!found) return "its container has gone";
    const Json& state = child(*found, "State");
    const std::string status = text(state, "Status");
    if (runs(status) || status == "created") return "";
    return status + ", code " + std::to_string(count(state, "ExitCode")) + " " +
           text(state, "Error").substr(0, 300);
}

void DockerRuntime::removeContainer(const SandboxId& id, TimePoint until) {
    const std::string container = "/containers/" + names_.container(id);
    for (;;) {
        try {
            engine_.call({.method = "DELETE", .target = container + "?force=1&v=1", .body = {}},
                         until);
            return;
        } catch (const Error& e) {
            if (e.code() == ErrorCode::NotFound) return;
            if (e.code() != ErrorCode::Conflict || SystemClock().now() >= until) throw;
        }
        try {  // another process is removing it: afterwards it is gone, or can be removed again
            engine_.post(container + "/wait?condition=removed", nullptr, until);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::NotFound) throw;
        }
    }
}

void DockerRuntime::removeFiles(const SandboxId& id) const {
    sys::removeFile(names_.socket(id));
    sys::removeTree(startFolder(id));
}

void DockerRuntime::destroy(const SandboxId& id) {
    requireId(id);
    const TimePoint until = in(kEnd);
    {
        const Gate::Place place = destroys_.enter(until);
        sys::removeTree(startFolder(id));  // a concurrent create fails without it
        removeContainer(id, until);
    }
    removeFiles(id);  // last: while they exist, a list shows the sandbox
    {
        const MutexLock lock(mutex_);
        made_.erase(id);
    }
    use_.forget(names_.container(id));
    removeUnusedVolumes(until);
}

std::vector<DockerRuntime::Container> DockerRuntime::containers(TimePoint until) {
    const Json filters{
        {"label", Json::array({std::string(docker::kInstanceLabel) + "=" + names_.instance()})}};
    const Json answer =
        engine_.get("/containers/json?all=1&filters=" + percentEncode(dumpJson(filters)), until);
    std::vector<Container> found;
    for (const Json& item : answer) {
        const Json& labels = child(item, "Labels");
        Container container;
        container.info = infoFrom(labels, text(item, "State"));
        if (!isId(container.info.id, "sb_")) continue;
        container.inside = text(labels, docker::kInsideLabel);
        found.push_back(std::move(container));
    }
    return found;
}

std::vector<SandboxInfo> DockerRuntime::list() {
    std::map<SandboxId, SandboxInfo> all;
    const auto add_piece = [&](const std::string& id) {
        if (isId(id, "sb_")) all[id].id = id;
    };
    for (const std::string& name : sys::listDirectory(names_.sockets())) {
        if (name.ends_with(kSocketSuffix)) {
            add_piece(name.substr(0, name.size() - kSocketSuffix.size()));
        }
    }
    for (const std::string& name : sys::listDirectory(start_)) add_piece(name);
    for (Container& container : containers(in(kLook))) {
        const SandboxId id = container.info.id;
        all[id] = std::move(container.info);
    }
    std::vector<SandboxInfo> sandboxes;
    sandboxes.reserve(all.size());
    for (auto& [id, info] : all) sandboxes.push_back(std::move(info));
    return sandboxes;
}

std::optional<SandboxInfo> DockerRuntime::find(const SandboxId& id) {
    requireId(id);
    const auto found = engine_.find("/containers/" + names_.container(id) + "/json", in(kLook));
    if (found) {
        SandboxInfo info = infoFrom(child(child(*found, "Config"), "Labels"),
                                    text(child(*found, "State"), "Status"));
        if (info.id == id) return info;
    }
    // As in a list, a sandbox of which only parts exist is also found.
    const bool piece = ::access(names_.socket(id).c_str(), F_OK) == 0 ||
                       ::access(startFolder(id).c_str(), F_OK) == 0;
    if (!piece) return std::nullopt;
    SandboxInfo info;
    info.id = id;
    return info;
}

Fd DockerRuntime::connect(const SandboxId& id) {
    requireId(id);
    // In copy mode, a sandbox with a socket was made before that mode was chosen.
    const bool mounted = !copies() || ::access(names_.socket(id).c_str(), F_OK) == 0;
    if (mounted) return connectTo(names_.socket(id));
    const TimePoint until = in(kConnect);
    const Gate::Place place = claims_.enter(until);
    try {
        docker::AgentRelay relay =
            docker::startRelay(engine_, names_.container(id), "--relay", until);
        return pump_.carry(std::move(relay.stream), std::move(relay.decoder),
                           std::move(relay.early));
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound || e.code() == ErrorCode::Conflict) {
            throwErrno(ECONNREFUSED, "connect", "the agent of " + id);
        }
        throw;
    }
}

std::optional<SandboxUsage> DockerRuntime::usage(const SandboxId& id) {
    requireId(id);
    return use_.usage(names_.container(id), in(kLook));
}

std::optional<LimitInUse> DockerRuntime::narrow(const SandboxId& id, const SandboxLimits& limits) {
    requireId(id);
    const TimePoint until = in(kNarrow);
    const Gate::Place place = claims_.enter(until);
    return use_.narrow(names_.container(id), limits, until);
}

bool DockerRuntime::freeze(const SandboxId& id) {
    requireId(id);
    try {
        engine_.post("/containers/" + names_.container(id) + "/pause", nullptr, in(kFreezeBy));
        return true;
    } catch (const std::exception&) {
        // The container may still be paused, because an answer that came too late is lost.
        static_cast<void>(thaw(id));
        return false;
    }
}

bool DockerRuntime::thaw(const SandboxId& id) {
    requireId(id);
    try {
        engine_.post("/containers/" + names_.container(id) + "/unpause", nullptr, in(kFreezeBy));
        return true;
    } catch (const std::exception&) {
        try {
            const std::optional<SandboxInfo> info = find(id);
            return !info || !info->frozen;
        } catch (const std::exception&) {
            return false;
        }
    }
}

std::optional<std::string> DockerRuntime::readyImage(const std::string& name) {
    return images_.ready(name, in(kLook));
}

std::string DockerRuntime::resolveImage(const std::string& name) {
    return images_.resolve(name, in(kLook));
}

bool DockerRuntime::sameImage(const std::string& image, const std::string& wanted) {
    return images_.same(image, wanted, in(kLook));
}

std::optional<KnownImage> DockerRuntime::knownImage(const std::string& wanted) {
    return images_.known(wanted, in(kLook));
}

KnownImage DockerRuntime::fetchImage(const ImageFetch& fetch, ImageStages& stages) {
    const TimePoint begin = SystemClock().now();
    KnownImage image = images_.fetch(fetch.reference, in(fetch.limit));
    stages.pull = SystemClock().now() - begin;  // the daemon unpacks while it pulls
    return image;
}

void DockerRuntime::collectImages(const std::vector<std::string>& wanted) {
    images_.collect(wanted, in(kMake));
}

std::vector<std::string> DockerRuntime::layers() {
    if (!copies()) return layers_.all();
    throw Error(ErrorCode::Unsupported,
                "packages of a pool are mounted from this machine, and " + agent_.reason)
        .hint("run hearth where dockerd runs, or put the packages into the image");
}

void DockerRuntime::addLayer(const std::string& digest, int tar) {
    layers();
    layers_.add(digest, tar);
}

void DockerRuntime::removeLayer(const std::string& digest) {
    layers_.remove(digest);
}

std::vector<Leftover> DockerRuntime::sweep(const std::vector<SandboxId>& keep) {
    const std::set<SandboxId> kept(keep.begin(), keep.end());
    // A killed server may have left the daemon at work: if the folder of a handover exists, its
    // container may still appear.
    const std::vector<std::string> handovers = sys::listDirectory(start_);
    const bool late =
        std::ranges::any_of(handovers, [&](const std::string& id) { return !kept.contains(id); });
    std::vector<Leftover> leftovers = sweepOnce(kept);
    if (late) {
        std::this_thread::sleep_for(kLateCreate);
        leftovers = sweepOnce(kept);
    }
    removeUnusedVolumes(in(kEnd));
    std::set<std::string> used{inside_.substr(inside_.rfind('/') + 1)};
    for (const Container& container : containers(in(kLook))) used.insert(container.inside);
    for (const std::string& name : sys::listDirectory(insides_)) {
        if (!used.contains(name)) sys::removeTree(insides_ + "/" + name);
    }
    return leftovers;
}

std::vector<Leftover> DockerRuntime::sweepOnce(const std::set<SandboxId>& keep) {
    std::vector<Leftover> leftovers;
    const std::vector<SandboxInfo> found = list();
    std::set<SandboxId> made;  // read after the list: containers made meanwhile are in it
    {
        const MutexLock lock(mutex_);
        made = made_;
    }
    for (const SandboxInfo& info : found) {
        if (keep.contains(info.id) || made.contains(info.id)) continue;
        try {
            destroy(info.id);
        } catch (const std::exception& e) {
            leftovers.push_back({info.id, e.what()});  // the others must still be removed
        }
    }
    return leftovers;
}

void DockerRuntime::readFacts() {
    const Json info = engine_.get("/info", in(kLook));
    facts_.name = "docker";
    facts_.version = "Docker " + text(info, "ServerVersion");
    const auto options = info.find("SecurityOptions");
    if (options != info.end() && options->is_array()) {
        for (const Json& option : *options) {
            const std::string word = option.is_string() ? option.get<std::string>() : "";
            if (word.starts_with("name=userns") || word.starts_with("name=rootless")) {
                facts_.user_namespaces = true;
            }
            if (word.starts_with("name=seccomp")) facts_.seccomp = true;
        }
    }
    facts_.cgroup = text(info, "CgroupVersion") == "2" ? "v2" : "v1";
    const std::string runc = text(child(info, "RuncCommit"), "ID");
    const std::size_t digit = runc.find_first_of("0123456789");
    if (digit <= 1) {
        facts_.holes = launcher::knownHoles("runc version " + runc.substr(digit), runc);
    }
}

RuntimeFacts DockerRuntime::facts() {
    RuntimeFacts facts = facts_;
    facts.images = images_.ready(in(kLook));
    return facts;
}

}  // namespace hearth::pool
