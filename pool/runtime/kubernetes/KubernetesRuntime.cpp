#include "pool/runtime/kubernetes/KubernetesRuntime.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/runtime/RequireId.h"
#include "pool/runtime/kubernetes/PodManifest.h"
#include "pool/runtime/kubernetes/PodNetwork.h"

namespace hearth::pool {
namespace {

using kubernetes::KubeError;
using kubernetes::KubeErrorKind;
using kubernetes::ObjectChange;

constexpr auto kFirstList = std::chrono::seconds(20);
constexpr auto kDial = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kCall{10'000};
constexpr const char* kByNode = "node";
constexpr const char* kLayersFolder = "layers";  // in the volume
/// The stop flag of calls that must not begin.
const std::atomic<bool> kAlways{true};
/// By then the watch has shown a Pod's creation or end, or never will: it missed both.
constexpr auto kShownWithin = std::chrono::minutes(5);

/// Converts the refusal of a Pod to an error for the pool's condition.
Error refusal(const KubeError& error) {
    const bool ours =
        error.kind == KubeErrorKind::Invalid || error.kind == KubeErrorKind::BadRequest;
    Error told(ours ? ErrorCode::InvalidSpec : ErrorCode::Unavailable,
               "the API server did not create the Pod: " + error.text());
    if (error.kind == KubeErrorKind::Forbidden) {
        told.hint("a quota of the namespace may be full, or the server's role may lack a verb");
    }
    return told;
}

}  // namespace

KubernetesRuntime::KubernetesRuntime(KubernetesOptions options,
                                     std::unique_ptr<kubernetes::ClusterAccess> access,
                                     agent::secure::ServerKey key, const Clock& clock,
                                     metrics::Log& log)
    : options_(std::move(options)),
      access_(std::move(access)),
      key_(std::move(key)),
      clock_(clock),
      log_(log),
      layers_(options_.volume + "/" + kLayersFolder),
      pods_{.plural = "pods", .ns = access_->config().ns},
      client_(*access_),
      cache_({{kByNode, kubernetes::nodeName}}),
      reflector_(client_, pods_, cache_, clock, following()) {
    const kubernetes::KubeResult<Json> version = client_.getPath("/version");
    if (!version) {
        throw Error(ErrorCode::Unavailable, "the API server at " + access_->config().url +
                                                " does not answer: " + version.error().text());
    }
    version_ = version.value().value("gitVersion", "");
    const Json owner = findOwner();
    kubernetes::PodGroup group{
        .ns = pods_.ns, .instance = options_.instance, .owner = {}, .servers = {}};
    if (owner.is_object()) {
        owner_ = group.owner = kubernetes::referenceTo(owner);
        group.servers = owner.value(Json::json_pointer("/spec/selector"), Json());
    }
    prepareVolume();
    kubernetes::shutPodsOff(client_, group, limits());
    subscription_ = cache_.subscribe([this](const ObjectChange& change) { changed(change); });
    follower_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
    try {
        awaitFirstList();
    } catch (...) {
        reflector_.stop();
        throw;
    }
    nodes_ = std::make_unique<kubernetes::NodeWatch>(
        client_, clock_, log_, [this](const std::string& node) { nodeChanged(node); });
}

Json KubernetesRuntime::findOwner() {
    if (options_.owner.empty()) return nullptr;
    const auto name = kubernetes::parseOwner(options_.owner, pods_.ns);
    if (!name) {
        throw Error(ErrorCode::InvalidArgument,
                    "\"" + options_.owner + "\" is not an owner of Pods")
            .hint("name an object of the namespace, such as deployments.apps/hearth");
    }
    kubernetes::KubeResult<Json> found = client_.get(name->resource, name->name);
    if (found) return std::move(found).value();
    throw Error(ErrorCode::Unavailable, "the owner of Pods, " + options_.owner +
                                            ", cannot be found: " + found.error().text())
        .hint("check that the server may get it, and that it is in the namespace " + pods_.ns);
}

KubernetesRuntime::~KubernetesRuntime() {
    stopped_ = true;
    nodes_.reset();
    follower_.request_stop();
    reflector_.stop();
    if (follower_.joinable()) follower_.join();
    subscription_.reset();
}

kubernetes::ReflectorOptions KubernetesRuntime::following() {
    kubernetes::ReflectorOptions options;
    options.label_selector = std::string(kubernetes::kInstanceLabel) + "=" + options_.instance;
    options.on_condition = [this](const kubernetes::ReflectorCondition& condition) {
        heard(condition);
    };
    return options;
}

void KubernetesRuntime::heard(const kubernetes::ReflectorCondition& condition) {
    if (condition.state == kubernetes::ReflectorCondition::State::Following) {
        log_.info("kubernetes.following", {{"namespace", pods_.ns}});
    } else {
        log_.warn("kubernetes.behind", {{"namespace", pods_.ns}, {"why", condition.message}});
    }
    {
        const MutexLock lock(mutex_);
        followed_ = followed_ || cache_.hasSynced();
    }
    following_.notifyAll();
}

void KubernetesRuntime::awaitFirstList() {
    const MutexLock lock(mutex_);
    following_.waitFor(mutex_, kFirstList, [this]() HEARTH_REQUIRES(mutex_) { return followed_; });
    if (followed_) return;
    throw Error(ErrorCode::Unavailable, "the Pods of namespace " + pods_.ns +
                                            " cannot be listed: " + reflector_.condition().message);
}

void KubernetesRuntime::changed(const ObjectChange& change) {
    const std::optional<kubernetes::PodView> seen =
        kubernetes::viewOf(change.now ? *change.now : *change.before);
    if (!seen) return;
    std::function<void(const SandboxId&)> news;
    {
        const MutexLock lock(mutex_);
        const auto made = made_.find(seen->info.id);
        if (made != made_.end()) made->second.reset();
        if (!change.now) made_.erase(seen->info.id);
        news = news_;
    }
    if (!seen->info.trouble.empty()) {
        log_.debug("kubernetes.pod_waits",
                   {{"sandbox", seen->info.id}, {"why", seen->info.trouble}});
    }
    if (news) news(seen->info.id);
}

void KubernetesRuntime::nodeChanged(const std::string& node) {
    std::function<void(const SandboxId&)> news;
    {
        const MutexLock lock(mutex_);
        news = news_;
    }
    if (!news) return;
    for (const kubernetes::KubeObject& pod : cache_.find(kByNode, node)) {
        if (const auto seen = kubernetes::viewOf(*pod)) news(seen->info.id);
    }
}

/// `nodes_` is set last, so its first report may come before the pointer is set.
SandboxInfo KubernetesRuntime::infoOf(kubernetes::PodView view) const {
    if (nodes_) view.info.unfit = nodes_->unfit(view.node);
    return std::move(view.info);
}

void KubernetesRuntime::onNews(const std::function<void(const SandboxId&)>& news) {
    const MutexLock lock(mutex_);
    news_ = news;
}

/// A create without an answer may have succeeded: a look-up by name shows it.
kubernetes::KubeResult<Json> KubernetesRuntime::createPod(const Json& pod) {
    kubernetes::KubeResult<Json> made = client_.create(pods_, pod, limits());
    if (made || !made.error().ambiguous) return made;
    return client_.get(pods_, pod.at("metadata").at("name").get<std::string>(), limits());
}

ContainerRuntime::Started KubernetesRuntime::create(const SandboxId& id, const SandboxSpec& spec) {
    requireId(id);
    requireLead();
    const std::string layer = layerOf(spec);
    {
        const MutexLock lock(mutex_);
        made_[id] = clock_.now();
    }
    const Json pod = kubernetes::podManifest(spec, {.id = id,
                                                    .instance = options_.instance,
                                                    .agent_image = options_.agent_image,
                                                    .server_key = key_.publicKey().text(),
                                                    .created_unix_ms = toUnixMillis(clock_.wall()),
                                                    .owner = owner_,
                                                    .layer_claim = options_.volume_claim,
                                                    .layer = layer});
    const kubernetes::KubeResult<Json> made = createPod(pod);
    if (!made) {
        const MutexLock lock(mutex_);
        made_.erase(id);
        if (made.failed(KubeErrorKind::AlreadyExists)) {
            throw Error(ErrorCode::Conflict, "the sandbox exists already");
        }
        throw refusal(made.error());
    }
    return Started::Accepted;
}

void KubernetesRuntime::requireLead() const {
    if (options_.may_write()) return;
    throw Error(ErrorCode::Unavailable,
                "another replica may lead: nothing is made or destroyed before the Lease is "
                "renewed");
}

void KubernetesRuntime::noteClaim(const SandboxId& id) {
    requireId(id);
    const Json patch{{"metadata", {{"labels", {{kubernetes::kClaimedLabel, "true"}}}}}};
    const kubernetes::KubeResult<Json> noted = client_.patch(
        pods_, kubernetes::podName(id), kubernetes::PatchKind::Merge, patch, {}, limits());
    if (noted || noted.failed(KubeErrorKind::NotFound)) return;
    throw Error(ErrorCode::Unavailable,
                "the claim of " + id + " could not be noted at its Pod: " + noted.error().text());
}

void KubernetesRuntime::destroy(const SandboxId& id) {
    requireId(id);
    requireLead();
    {
        const MutexLock lock(mutex_);
        if (ended_.contains(id)) return;
    }
    const kubernetes::KubeResult<Json> gone =
        client_.remove(pods_, kubernetes::podName(id), {.grace_seconds = 0}, limits());
    if (!gone && !gone.failed(KubeErrorKind::NotFound)) {
        throw Error(ErrorCode::Unavailable,
                    "the API server did not delete the Pod: " + gone.error().text());
    }
    const TimePoint now = clock_.now();
    const MutexLock lock(mutex_);
    std::erase_if(ended_, [&](const auto& one) { return now - one.second > kShownWithin; });
    const auto made = made_.find(id);
    if (made != made_.end()) made_.erase(made);
    // Until the watch shows the end, this hides the Pod, so nobody ends it again.
    ended_[id] = now;
}

void KubernetesRuntime::prepareVolume() {
    if (options_.volume.empty()) return;
    std::error_code error;
    std::filesystem::create_directory(options_.volume + "/" + kLayersFolder, error);
    if (error) {
        throw Error(ErrorCode::InvalidArgument,
                    "this server cannot write to " + options_.volume + ": " + error.message())
            .hint("mount a volume there that is writable for the server's user");
    }
    // A tenant reads its layer there, and cannot list others.
    std::filesystem::permissions(options_.volume + "/" + kLayersFolder,
                                 std::filesystem::perms::owner_all |
                                     std::filesystem::perms::group_exec |
                                     std::filesystem::perms::others_exec,
                                 error);
    layers_.removeUnfinished();
}

std::vector<std::string> KubernetesRuntime::layers() {
    if (!options_.volume.empty() && !options_.volume_claim.empty()) return layers_.all();
    throw Error(ErrorCode::Unsupported,
                "Pods get the packages of their pool from a volume, and there is none")
        .hint(
            "name one with --shared-volume and --shared-volume-claim, or put the packages into "
            "the image");
}

void KubernetesRuntime::addLayer(const std::string& digest, int tar) {
    layers();
    requireLead();
    layers_.add(digest, tar);
}

void KubernetesRuntime::removeLayer(const std::string& digest) {
    requireLead();
    layers_.remove(digest);
}

std::string KubernetesRuntime::layerOf(const SandboxSpec& spec) {
    if (spec.layer.empty()) return {};
    layers();
    const std::string place = layers_.require(spec.layer);
    return std::string(kLayersFolder) + place.substr(place.rfind('/'));
}

std::string KubernetesRuntime::keyOf(const SandboxId& id) const {
    return pods_.ns + "/" + kubernetes::podName(id);
}

std::optional<kubernetes::PodView> KubernetesRuntime::view(const SandboxId& id) const {
    const kubernetes::KubeObject pod = cache_.get(keyOf(id));
    return pod ? kubernetes::viewOf(*pod) : std::nullopt;
}

std::optional<SandboxInfo> KubernetesRuntime::find(const SandboxId& id) {
    requireId(id);
    std::optional<kubernetes::PodView> seen = view(id);
    const MutexLock lock(mutex_);
    if (ended_.contains(id)) return std::nullopt;
    if (seen) return infoOf(*std::move(seen));
    const auto made = made_.find(id);
    if (made == made_.end() || !made->second) return std::nullopt;
    if (clock_.now() - *made->second > kShownWithin) {
        made_.erase(made);
        return std::nullopt;
    }
    SandboxInfo info;  // the watch has not shown it yet
    info.id = id;
    info.alive = true;
    info.listening = false;
    return info;
}

std::vector<SandboxInfo> KubernetesRuntime::list() {
    std::vector<SandboxInfo> all;
    std::set<SandboxId> seen;
    for (const kubernetes::KubeObject& pod : cache_.list()) {
        std::optional<kubernetes::PodView> one = kubernetes::viewOf(*pod);
        if (!one) continue;
        seen.insert(one->info.id);
        all.push_back(infoOf(*std::move(one)));
    }
    std::vector<SandboxId> fresh;
    {
        const MutexLock lock(mutex_);
        std::erase_if(all, [&](const SandboxInfo& one)
                               HEARTH_REQUIRES(mutex_) { return ended_.contains(one.id); });
        for (const auto& [id, since] : made_) {
            if (since && !seen.contains(id)) fresh.push_back(id);
        }
    }
    for (const SandboxId& id : fresh) {
        if (std::optional<SandboxInfo> info = find(id)) all.push_back(*std::move(info));
    }
    return all;
}

agent::AgentDialer KubernetesRuntime::dialer(const SandboxId& id) {
    requireId(id);
    return [this, id](agent::secure::Purpose purpose) { return dial(id, purpose); };
}

agent::AgentLink KubernetesRuntime::dial(const SandboxId& id,
                                         agent::secure::Purpose purpose) const {
    const std::optional<kubernetes::PodView> seen = view(id);
    if (!seen || !seen->info.listening) throwErrno(ENOTCONN, "connect", "the agent of " + id);
    return agent::TcpDialer(key_, *seen->agent, kDial)(purpose);
}

std::optional<LimitInUse> KubernetesRuntime::narrow(const SandboxId& id,
                                                    const SandboxLimits& /*limits*/) {
    requireId(id);
    throw Error(ErrorCode::Unsupported, "a Pod keeps the limits that its pool gives it")
        .hint("choose a pool with smaller limits");
}

std::vector<Leftover> KubernetesRuntime::sweep(const std::vector<SandboxId>& keep) {
    const std::set<SandboxId> kept(keep.begin(), keep.end());
    std::vector<Leftover> left;
    for (const SandboxInfo& info : list()) {
        {
            const MutexLock lock(mutex_);
            if (kept.contains(info.id) || made_.contains(info.id)) continue;
        }
        try {
            destroy(info.id);
        } catch (const std::exception& e) {
            left.push_back({info.id, e.what()});
        }
    }
    return left;
}

RuntimeFacts KubernetesRuntime::facts() {
    RuntimeFacts facts;
    facts.name = "kubernetes";
    facts.version = version_;
    facts.seccomp = true;
    facts.cgroup = "none";
    return facts;
}

/// A running call ends by its own limit, which is shorter than the stop of a server.
void KubernetesRuntime::finishWithin(std::chrono::milliseconds most) {
    last_call_ = clock_.now() + most;
}

kubernetes::CallLimits KubernetesRuntime::limits() const {
    const TimePoint end = last_call_;
    const TimePoint now = clock_.now();
    if (end == TimePoint::max()) return {.timeout = kCall, .stop = &stopped_};
    if (end <= now) return {.timeout = kCall, .stop = &kAlways};
    return {.timeout = std::min(std::chrono::ceil<std::chrono::milliseconds>(end - now), kCall),
            .stop = &stopped_};
}

}  // namespace hearth::pool
