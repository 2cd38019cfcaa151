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
        if (condition.state == State::Starting || condition.state == State::Behind) return;
        if (condition.state == State::Following) {
            log_.info("kubernetes.objects_followed", {{"kind", resource_.text()}});
            const MutexLock lock(mutex_);
            listed_ = true;
            wake_.notifyAll();
            return;
        }
        log_.warn("kubernetes.objects_unknown",
                  {{"kind", resource_.text()},
                   {"why", condition.message},
                   {"hint", condition.state == State::Missing
                                ? "install the definition: hearth crds | kubectl apply -f -"
                                : "let the server list and watch them"}});
        settle();
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

void ObjectFollower::begin(std::chrono::milliseconds most) {
    subscription_ = cache_.subscribe([this](const kube::ObjectChange& change) {
        lookAt(kube::metadataText(change.now ? *change.now : *change.before, "name"));
    });
    follower_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
    worker_ = std::jthread([this](const std::stop_token& stop) { worker(stop); });
    const MutexLock lock(mutex_);
    wake_.waitFor(mutex_, most, [this]() HEARTH_REQUIRES(mutex_) { return settled_; });
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

bool ObjectFollower::has(const std::string& uid) const {
    const std::vector<kube::KubeObject> all = cache_.list();
    return std::any_of(all.begin(), all.end(), [&](const kube::KubeObject& each) {
        return kube::metadataText(*each, "uid") == uid;
    });
}

std::set<std::string> ObjectFollower::nextNames(const std::stop_token& stop) {
    std::set<std::string> names;
    {
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, stop, kLook,
                      [this]() HEARTH_REQUIRES(mutex_) { return listed_ || !changed_.empty(); });
        names.swap(changed_);
        listed_ = false;
    }
    return names.empty() ? known_ : names;
}

void ObjectFollower::sync(const std::string& name) {
    const kube::KubeObject object = cache_.get(resource_.ns + "/" + name);
    const bool there = object && kube::metadataText(*object, "deletionTimestamp").empty();
    if (work_.sync(name, there ? object.get() : nullptr)) {
        known_.insert(name);
    } else {
        known_.erase(name);
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
        work_.round();
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

void ObjectFollower::tell(const std::vector<Json>& events) {
    for (const Json& event : events) {
        const std::string failure = create({.plural = "events", .ns = resource_.ns}, event);
        if (failure.empty()) continue;
        log_.info("kubernetes.event_not_made", {{"kind", resource_.text()}, {"error", failure}});
        return;
    }
}

}  // namespace hearth::kubernetes
