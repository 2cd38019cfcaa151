#include "api/kubernetes/PoolObjects.h"

#include <utility>

#include "base/Error.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::kubernetes {
namespace {

/// The least time between writes of a status: of conditions; of counts (each claim changes them).
constexpr auto kCalm = std::chrono::seconds(1);
constexpr auto kCountsCalm = std::chrono::seconds(5);
/// The least time between two rounds of events about one pool.
constexpr auto kEventsCalm = std::chrono::seconds(10);
/// The pause before a refused object is tried again: the refusal may be temporary.
constexpr auto kSoon = std::chrono::seconds(5);
constexpr auto kLater = std::chrono::seconds(60);

controller::Principal ourselves() {
    return {.role = controller::Role::Admin, .token_id = {}};
}

}  // namespace

PoolObjects::PoolObjects(pool::kubernetes::ClusterConfig cluster, controller::PoolService& pools,
                         const Clock& clock, metrics::Log& log)
    : pools_(pools),
      clock_(clock),
      log_(log),
      definitions_(clock, log),
      follower_(std::move(cluster), "sandboxpools", clock, log,
                {[this](const std::string& name, const Json* object) { return sync(name, object); },
                 [this] {
                     lookAtDefinitions();
                     withdrawLeftovers();
                     all_declared_ = true;
                 }}) {}

std::optional<controller::PoolView> PoolObjects::find(const std::string& name) {
    try {
        return pools_.get(ourselves(), name);
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool PoolObjects::sync(const std::string& name, const Json* object) {
    if (object == nullptr) {
        followed_.erase(name);
        return !withdraw(name);
    }
    Followed& known = followed_[name];
    const std::string uid = pool::kubernetes::metadataText(*object, "uid");
    if (known.uid != uid) {
        known = {};
        known.uid = uid;
        known.status = object->value("status", Json::object());
    }
    const bool due = known.again && clock_.now() >= *known.again;
    if (known.generation != generationOf(*object) || due) declare(*object, known);
    if (!all_declared_) return true;
    lookAtDefinitions();
    Json seen = *object;  // with the last known status: the watch may lag
    seen["status"] = known.status;
    publish(seen, known);
    return true;
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
        known.refusal = refusalOf(e, "Ending");  // the earlier pool still has sandboxes
    } catch (const std::exception& e) {
        known.refusal = Refusal{"Failed", e.what()};
    }
    known.again = clock_.now() + (known.refusal->wrong ? kLater : kSoon);
    if (before && before->message == known.refusal->message) return;
    log_.warn("kubernetes.pool_refused", {{"pool", pool::kubernetes::metadataText(object, "name")},
                                          {"error", known.refusal->message}});
}

/// Withdraws a pool only if an object declared it: a file may have that name. False: not yet.
bool PoolObjects::withdraw(const std::string& name) {
    const std::optional<controller::PoolView> view = find(name);
    if (!view || view->pool->object.empty() || view->pool->deleting) return true;
    try {
        pools_.withdraw(name);
        return true;
    } catch (const Error& e) {
        log_.error("kubernetes.pool_not_withdrawn", {{"pool", name}, {"error", e.what()}});
        return false;
    }
}

/// Withdraws pools whose objects were deleted while no server ran, or another replica led.
void PoolObjects::withdrawLeftovers() {
    for (const controller::PoolView& view : pools_.list(ourselves())) {
        if (!view.pool->object.empty() && !followed_.contains(view.pool->name)) {
            withdraw(view.pool->name);
        }
    }
}

void PoolObjects::lookAtDefinitions() {
    definitions_.look([this](const std::string& path) { return follower_.read(path); });
}

void PoolObjects::publish(const Json& object, Followed& known) {
    const std::optional<controller::PoolView> view =
        find(pool::kubernetes::metadataText(object, "name"));
    // The pool was not looked at since the start, so the object's status is newer.
    if (!known.refusal && (!view || view->status.conditions.empty())) return;
    const Json status = poolStatusOf(object, view, known.refusal, formatRfc3339(clock_.wall()),
                                     definitions_.trouble());
    if (status == known.status) return;
    const bool more = tellsMore(known.status, status) && known.trouble.empty();
    const TimePoint now = clock_.now();
    if (known.wrote && now < *known.wrote + (more ? kCalm : kCountsCalm)) return;
    known.wrote = now;
    if (!follower_.writeStatus(object, status, known.trouble)) return;  // again after the pause
    const std::vector<Json> events =
        eventsOf(object, known.status, status, formatRfc3339(clock_.wall()));
    known.status = status;
    if (events.empty() || (known.told && now < *known.told + kEventsCalm)) return;
    known.told = now;
    follower_.tell(events);
}

}  // namespace hearth::kubernetes
