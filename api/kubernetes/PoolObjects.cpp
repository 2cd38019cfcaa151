#include "api/kubernetes/PoolObjects.h"

#include <utility>

#include "base/Error.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::kubernetes {
namespace {

namespace kube = pool::kubernetes;

constexpr auto kLook = std::chrono::seconds(1);
/// Between two writes of one status: of conditions, and of counts, which change with every claim.
constexpr auto kCalm = std::chrono::seconds(1);
constexpr auto kCountsCalm = std::chrono::seconds(5);
/// Between two rounds of events about one pool.
constexpr auto kEventsCalm = std::chrono::seconds(10);
/// Until a refused object is tried again: it may be wrong only as things are.
constexpr auto kSoon = std::chrono::seconds(5);
constexpr auto kLater = std::chrono::minutes(1);
constexpr auto kCall = std::chrono::seconds(10);

controller::Principal ourselves() {
    return {.role = controller::Role::Admin, .token_id = {}};
}

std::string wordsOf(const Error& error) {
    std::string words = error.what();
    // What() has the first of them already.
    for (std::size_t i = 1; i < error.fields().size(); ++i) {
        words.append("; ").append(error.fields()[i].pointer).append(" ");
        words.append(error.fields()[i].reason);
    }
    if (!error.hint().empty()) words.append(" (").append(error.hint()).append(")");
    return words;
}

Refusal refusalOf(const Error& error) {
    if (error.code() == ErrorCode::InvalidSpec || error.code() == ErrorCode::InvalidArgument) {
        return {"InvalidSpec", wordsOf(error), true};
    }
    // Its namesake of before still has sandboxes.
    if (error.code() == ErrorCode::Conflict) return {"Ending", wordsOf(error)};
    return {"Failed", wordsOf(error)};
}

bool isGoing(const Json& object) {
    return !kube::metadataText(object, "deletionTimestamp").empty();
}

}  // namespace

PoolObjects::PoolObjects(kube::ClusterConfig cluster, controller::PoolService& pools,
                         const Clock& clock, metrics::Log& log)
    : pools_(pools),
      clock_(clock),
      log_(log),
      access_(std::move(cluster), clock),
      client_(access_),
      resource_{.group = "hearth.dev",
                .version = "v1alpha1",
                .plural = "sandboxpools",
                .ns = access_.config().ns},
      reflector_(client_, resource_, cache_, clock, following()) {}

PoolObjects::~PoolObjects() {
    stop();
}

kube::ReflectorOptions PoolObjects::following() {
    kube::ReflectorOptions options;
    options.on_condition = [this](const kube::ReflectorCondition& condition) {
        using State = kube::ReflectorCondition::State;
        if (condition.state == State::Starting || condition.state == State::Behind) return;
        if (condition.state == State::Following) {
            log_.info("kubernetes.pools_followed", {{"namespace", resource_.ns}});
            const MutexLock lock(mutex_);
            listed_ = true;
            wake_.notifyAll();
            return;
        }
        log_.warn("kubernetes.pools_unknown",
                  {{"why", condition.message},
                   {"hint", condition.state == State::Missing
                                ? "install the definition: hearth crds | kubectl apply -f -"
                                : "let the server list and watch sandboxpools.hearth.dev"}});
        const MutexLock lock(mutex_);
        settled_ = true;
        wake_.notifyAll();
    };
    return options;
}

void PoolObjects::begin(std::chrono::milliseconds most) {
    subscription_ = cache_.subscribe([this](const kube::ObjectChange& change) {
        const Json& object = change.now ? *change.now : *change.before;
        const MutexLock lock(mutex_);
        changed_.insert(kube::metadataText(object, "name"));
        wake_.notifyAll();
    });
    follower_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
    worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    const MutexLock lock(mutex_);
    wake_.waitFor(mutex_, most, [this]() HEARTH_REQUIRES(mutex_) { return settled_; });
}

void PoolObjects::stop() {
    stopped_ = true;
    worker_.request_stop();
    follower_.request_stop();
    reflector_.stop();
    if (worker_.joinable()) worker_.join();
    if (follower_.joinable()) follower_.join();
    subscription_.reset();
}

std::set<std::string> PoolObjects::nextNames(const std::stop_token& stop) {
    std::set<std::string> names;
    {
        const MutexLock lock(mutex_);
        wake_.waitFor(mutex_, stop, kLook,
                      [this]() HEARTH_REQUIRES(mutex_) { return listed_ || !changed_.empty(); });
        names.swap(changed_);
        listed_ = false;
    }
    if (!names.empty()) return names;
    for (const auto& [name, known] : followed_) names.insert(name);
    return names;
}

void PoolObjects::work(const std::stop_token& stop) {
    bool complete = false;
    while (!stop.stop_requested()) {
        for (const std::string& name : nextNames(stop)) {
            if (stop.stop_requested()) return;
            sync(name);
        }
        if (complete || !reflector_.ready()) continue;
        for (const kube::KubeObject& object : cache_.list()) {
            sync(kube::metadataText(*object, "name"));
        }
        withdrawLeftovers();
        complete = true;
        const MutexLock lock(mutex_);
        settled_ = true;
        wake_.notifyAll();
    }
}

std::optional<controller::PoolView> PoolObjects::find(const std::string& name) {
    try {
        return pools_.get(ourselves(), name);
    } catch (const Error&) {
        return std::nullopt;
    }
}

void PoolObjects::sync(const std::string& name) {
    const kube::KubeObject object = cache_.get(resource_.ns + "/" + name);
    if (!object || isGoing(*object)) {
        followed_.erase(name);
        withdraw(name);
        return;
    }
    Followed& known = followed_[name];
    const std::string uid = kube::metadataText(*object, "uid");
    if (known.uid != uid) {
        known = {};
        known.uid = uid;
        known.status = object->value("status", Json::object());
    }
    const bool due = known.again && clock_.now() >= *known.again;
    if (known.generation != generationOf(*object) || due) declare(*object, known);
    publish(*object, known);
}

void PoolObjects::declare(const Json& object, Followed& known) {
    const std::optional<Refusal> before = std::exchange(known.refusal, std::nullopt);
    known.generation = generationOf(object);
    known.again.reset();
    try {
        controller::Pool pool = controller::parsePool(manifestOf(object));
        pool.object = known.uid;
        pools_.declare(pool);
        return;
    } catch (const Error& e) {
        known.refusal = refusalOf(e);
    } catch (const std::exception& e) {
        known.refusal = Refusal{"Failed", e.what()};
    }
    known.again = clock_.now() + (known.refusal->wrong ? std::chrono::seconds(kLater) : kSoon);
    if (before && before->message == known.refusal->message) return;
    log_.warn("kubernetes.pool_refused",
              {{"pool", kube::metadataText(object, "name")}, {"error", known.refusal->message}});
}

/// Only what such an object declared: a file may have a pool of that name.
void PoolObjects::withdraw(const std::string& name) {
    const std::optional<controller::PoolView> view = find(name);
    if (!view || view->pool->object.empty() || view->pool->deleting) return;
    try {
        pools_.withdraw(name);
    } catch (const Error& e) {
        log_.error("kubernetes.pool_not_withdrawn", {{"pool", name}, {"error", e.what()}});
        followed_[name] = {};  // once more at the next look
    }
}

/// Pools whose objects went while no server looked, or another one led.
void PoolObjects::withdrawLeftovers() {
    for (const controller::PoolView& view : pools_.list(ourselves())) {
        if (!view.pool->object.empty() && !followed_.contains(view.pool->name)) {
            withdraw(view.pool->name);
        }
    }
}

void PoolObjects::publish(const Json& object, Followed& known) {
    const std::optional<controller::PoolView> view = find(kube::metadataText(object, "name"));
    // Nobody has looked at it yet since the start: what the object says is newer.
    if (!known.refusal && (!view || view->status.conditions.empty())) return;
    const Json status = statusOf(object, view, known.refusal, formatRfc3339(clock_.wall()));
    if (status == known.status) return;
    const bool more = tellsMore(known.status, status) && known.trouble.empty();
    const TimePoint now = clock_.now();
    if (known.wrote && now < *known.wrote + (more ? kCalm : kCountsCalm)) return;
    known.wrote = now;
    const kube::CallLimits limits{.timeout = kCall, .stop = &stopped_};
    const kube::KubeResult<Json> written =
        client_.patch(resource_, kube::metadataText(object, "name"), kube::PatchKind::Merge,
                      statusPatch(object, status), "status", limits);
    const std::string trouble = written ? "" : written.error().text();
    if (!trouble.empty() && trouble != known.trouble && !stopped_ &&
        !written.failed(kube::KubeErrorKind::NotFound)) {
        log_.warn("kubernetes.status_not_written",
                  {{"pool", kube::metadataText(object, "name")}, {"error", trouble}});
    }
    known.trouble = trouble;
    if (!written) return;  // once more after the calm
    tell(object, status, known);
    known.status = status;
}

/// Events are a help, and the conditions are the truth: one that fails, or comes too soon after
/// another, is left out.
void PoolObjects::tell(const Json& object, const Json& status, Followed& known) {
    const std::string time = formatRfc3339(clock_.wall());
    const std::vector<Json> events = eventsOf(object, known.status, status, time);
    const TimePoint now = clock_.now();
    if (events.empty() || (known.told && now < *known.told + kEventsCalm)) return;
    known.told = now;
    const kube::KubeResource place{.plural = "events", .ns = resource_.ns};
    for (const Json& event : events) {
        const kube::KubeResult<Json> made =
            client_.create(place, event, {.timeout = kCall, .stop = &stopped_});
        if (made) continue;
        log_.info("kubernetes.event_not_made",
                  {{"pool", kube::metadataText(object, "name")}, {"error", made.error().text()}});
        return;
    }
}

}  // namespace hearth::kubernetes
