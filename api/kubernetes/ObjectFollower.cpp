#include "api/kubernetes/ObjectFollower.h"

#include <algorithm>
#include <utility>

#include "api/kubernetes/ObjectStatus.h"

namespace hearth::kubernetes {
namespace {

namespace kube = pool::kubernetes;

constexpr auto kLook = std::chrono::seconds(1);
constexpr auto kRound = std::chrono::minutes(1);
constexpr auto kCall = std::chrono::seconds(10);

}  // namespace

ObjectFollower::ObjectFollower(kube::ClusterConfig cluster, std::string plural, const Clock& clock,
                               metrics::Log& log, Work work)
    : clock_(clock),
      log_(log),
      work_(std::move(work)),
      access_(std::move(cluster), clock),
      client_(access_),
      resource_{.group = "hearth.dev",
                .version = "v1alpha1",
                .plural = std::move(plural),
                .ns = access_.config().ns},
      reflector_(client_, resource_, cache_, clock, following()) {}

ObjectFollower::~ObjectFollower() {
    stop();
}

kube::ReflectorOptions ObjectFollower::following() {
    kube::ReflectorOptions options;
    options.on_condition = [this](const kube::ReflectorCondition& condition) {
        using State = kube::ReflectorCondition::State;
        if (condition.state == State::Starting) return;
        if (condition.state == State::Following) {
            log_.info("kubernetes.objects_followed", {{"kind", resource_.text()}});
            const MutexLock lock(mutex_);
            listed_ = true;
            wake_.notifyAll();
            return;
        }
        const bool missing = condition.state == State::Missing;
        log_.warn(
            "kubernetes.objects_unknown",
            {{"kind", resource_.text()},
             {"why", condition.message},
             {"hint", missing ? "install the definition: hearth crds | kubectl apply -f -"
                      : condition.state == State::Behind
                          ? "they are followed again once the API server answers"
                          : "let the server list and watch them: hearth doctor --kubernetes"}});
        if (missing) settle();
    };
    return options;
}

void ObjectFollower::settle() {
    const MutexLock lock(mutex_);
    settled_ = true;
    wake_.notifyAll();
}

void ObjectFollower::lookAt(const std::string& name) {
    const MutexLock lock(mutex_);
    changed_.insert(name);
    wake_.notifyAll();
}

void ObjectFollower::begin() {
    subscription_ = cache_.subscribe([this](const kube::ObjectChange& change) {
        lookAt(kube::metadataText(change.now ? *change.now : *change.before, "name"));
    });
    follower_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
    worker_ = std::jthread([this](const std::stop_token& stop) { worker(stop); });
}

bool ObjectFollower::awaitRound(std::stop_token stop) {
    const MutexLock lock(mutex_);
    return wake_.wait(mutex_, std::move(stop),
                      [this]() HEARTH_REQUIRES(mutex_) { return settled_; });
}

void ObjectFollower::stop() {
    stopped_ = true;
    worker_.request_stop();
    follower_.request_stop();
    reflector_.stop();
    if (worker_.joinable()) worker_.join();
    if (follower_.joinable()) follower_.join();
    subscription_.reset();
}

std::set<std::string> ObjectFollower::uids() const {
    std::set<std::string> all;
    for (const kube::KubeObject& each : cache_.list()) {
        all.insert(kube::metadataText(*each, "uid"));
    }
    return all;
}

std::vector<std::string> ObjectFollower::nextNames(const std::stop_token& stop) {
    std::set<std::string> names;
    {
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, stop, kLook,
                      [this]() HEARTH_REQUIRES(mutex_) { return listed_ || !changed_.empty(); });
        names.swap(changed_);
        listed_ = false;
    }
    const TimePoint now = clock_.now();
    if (!names.empty() && swept_ && now < *swept_ + kLook) return {names.begin(), names.end()};
    swept_ = now;
    names.insert(known_.begin(), known_.end());
    std::vector<std::string> all(names.begin(), names.end());
    if (!all.empty()) {
        const auto first = static_cast<std::ptrdiff_t>(sweeps_++ % all.size());
        std::rotate(all.begin(), all.begin() + first, all.end());
    }
    return all;
}

void ObjectFollower::sync(const std::string& name) {
    const kube::KubeObject object = cache_.get(resource_.ns + "/" + name);
    const bool there = object && kube::metadataText(*object, "deletionTimestamp").empty();
    bool again = true;
    guarded(name, [&] { again = work_.sync(name, there ? object.get() : nullptr); });
    if (again) {
        known_.insert(name);
    } else {
        known_.erase(name);
    }
}

/// Runs `act`; an object that fails must not stop the others.
void ObjectFollower::guarded(const std::string& name, const std::function<void()>& act) {
    try {
        act();
        failing_.erase(name);
    } catch (const std::exception& e) {
        std::string& before = failing_[name];
        if (before == e.what()) return;
        before = e.what();
        log_.error("kubernetes.object_failed",
                   {{"kind", resource_.text()}, {"name", name}, {"error", before}});
    }
}

void ObjectFollower::worker(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        for (const std::string& name : nextNames(stop)) {
            if (stop.stop_requested()) return;
            sync(name);
        }
        if (!reflector_.ready() || (round_ && clock_.now() < *round_ + kRound)) continue;
        for (const kube::KubeObject& object : cache_.list()) {
            sync(kube::metadataText(*object, "name"));
        }
        guarded("", work_.round);
        round_ = clock_.now();
        settle();
    }
}

bool ObjectFollower::writeStatus(const Json& object, const Json& status, std::string& trouble) {
    const std::string name = kube::metadataText(object, "name");
    const kube::KubeResult<Json> written =
        client_.patch(resource_, name, kube::PatchKind::Merge, statusPatch(object, status),
                      "status", {.timeout = kCall, .stop = &stopped_});
    const std::string before = std::exchange(trouble, written ? "" : written.error().text());
    if (!trouble.empty() && trouble != before && !stopped_ &&
        !written.failed(kube::KubeErrorKind::NotFound)) {
        log_.warn("kubernetes.status_not_written",
                  {{"kind", resource_.text()}, {"name", name}, {"error", trouble}});
    }
    return trouble.empty();
}

std::string ObjectFollower::create(const kube::KubeResource& resource, const Json& object) {
    const kube::KubeResult<Json> made =
        client_.create(resource, object, {.timeout = kCall, .stop = &stopped_});
    const bool there = made || made.failed(kube::KubeErrorKind::AlreadyExists);
    return there ? "" : made.error().text();
}

std::optional<Json> ObjectFollower::read(const std::string& path) {
    kube::KubeResult<Json> found = client_.getPath(path, {.timeout = kCall, .stop = &stopped_});
    if (!found) return std::nullopt;
    return std::move(found).value();
}

void ObjectFollower::tell(const std::vector<Json>& events) {
    for (const Json& event : events) {
        const std::string failure = create({.plural = "events", .ns = resource_.ns}, event);
        if (failure.empty()) continue;
        log_.info("kubernetes.event_not_made", {{"kind", resource_.text()}, {"error", failure}});
        return;
    }
}

}  // namespace hearth::kubernetes
