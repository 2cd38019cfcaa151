#include "api/kubernetes/WorkspaceObjects.h"

#include <algorithm>
#include <utility>

#include "api/auth/WorkspaceToken.h"
#include "base/Error.h"

namespace hearth::kubernetes {
namespace {

/// Claims that wait at once; the others stand before the line of their pool.
constexpr std::size_t kMostClaims = 64;
constexpr auto kRetry = std::chrono::seconds(5);
constexpr auto kRetryWrong = std::chrono::seconds(60);
/// Between two writes of one status.
constexpr auto kStatusCalm = std::chrono::seconds(1);

controller::Principal tenantOf(const std::string& tenant) {
    return {.tenant = tenant, .token_id = {}};
}

controller::Principal everyTenant() {
    return {.role = controller::Role::Admin, .token_id = {}};
}

/// The reason of a claim that is tried again.
const char* waitsFor(ErrorCode code) {
    switch (code) {
        case ErrorCode::NotFound:
            return "NoPool";
        case ErrorCode::PoolExhausted:
            return "PoolExhausted";
        case ErrorCode::QuotaExceeded:
            return "QuotaExceeded";
        case ErrorCode::PoolDegraded:
            return "PoolDegraded";
        default:
            return "Waiting";
    }
}

std::string textIn(const Json& status, const char* field) {
    return status.is_object() ? status.value(field, "") : "";
}

}  // namespace

WorkspaceObjects::WorkspaceObjects(pool::kubernetes::ClusterConfig cluster,
                                   controller::Workspaces& workspaces, std::string secret_key,
                                   std::string url, const Clock& clock, metrics::Log& log)
    : workspaces_(workspaces),
      secret_key_(std::move(secret_key)),
      url_(std::move(url)),
      clock_(clock),
      log_(log),
      follower_(std::move(cluster), "workspaces", clock, log,
                {[this](const std::string& name, const Json* object) { return sync(name, object); },
                 [this] { endLeftovers(); }}) {}

WorkspaceObjects::~WorkspaceObjects() {
    stop();
}

void WorkspaceObjects::stop() {
    follower_.stop();
    for (auto& [name, known] : followed_) known.claim.reset();
}

std::size_t WorkspaceObjects::waiting() const {
    return static_cast<std::size_t>(
        std::count_if(followed_.begin(), followed_.end(),
                      [](const auto& each) { return each.second.claim != nullptr; }));
}

bool WorkspaceObjects::sync(const std::string& name, const Json* object) {
    Followed& known = followed_[name];
    if (object == nullptr) {
        if (known.claim) collect(Json(), known);
        known.claim.reset();
        if (!known.workspace.empty() && !end(known.tenant, known.workspace)) return true;
        followed_.erase(name);
        return false;
    }
    const std::string uid = pool::kubernetes::metadataText(*object, "uid");
    if (known.uid != uid) {
        if (!known.workspace.empty()) end(known.tenant, known.workspace);
        known = {};
        known.uid = uid;
        known.status = object->value("status", Json::object());
        known.workspace = textIn(known.status, "workspace");
        known.tenant = textIn(known.status, "tenant");
        known.secret = !known.workspace.empty();
    }
    if (textIn(known.status, "phase") != "Gone") see(*object, known);
    return true;
}

void WorkspaceObjects::see(const Json& object, Followed& known) {
    if (known.claim) collect(object, known);
    if (known.workspace.empty() && !known.claim) claim(object, known);
    if (!known.workspace.empty()) follow(object, known);
}

void WorkspaceObjects::claim(const Json& object, Followed& known) {
    const bool same = known.refused == 0 || known.refused == generationOf(object);
    if (same && known.again && clock_.now() < *known.again) return;
    if (waiting() >= kMostClaims) return;
    known.refused = 0;
    try {
        beginClaim(pool::kubernetes::metadataText(object, "name"), wishOf(object, secret_key_),
                   known);
    } catch (const Error& e) {
        known.refused = generationOf(object);
        known.again = clock_.now() + kRetryWrong;
        publish(object, pendingStatus(object, refusalOf(e, "Failed"), formatRfc3339(clock_.wall())),
                known);
    }
}

void WorkspaceObjects::beginClaim(const std::string& name, const WorkspaceWish& wish,
                                  Followed& known) {
    known.tenant = wish.tenant;
    known.claim = std::make_unique<Claim>();
    Claim& claim = *known.claim;
    claim.thread = std::jthread([this, name, wish, &claim](const std::stop_token& stop) {
        std::optional<controller::WorkspaceView> view;
        std::optional<Refusal> refusal;
        try {
            controller::WorkspaceRequest request = wish.request;
            request.started_at = clock_.now();
            request.patience.stop = stop;
            view = workspaces_.create(tenantOf(wish.tenant), request);
        } catch (const Error& e) {
            refusal = refusalOf(e, "Waiting");
            if (!refusal->wrong) refusal->reason = waitsFor(e.code());
        } catch (const std::exception& e) {
            refusal = Refusal{"Failed", e.what()};
        }
        {
            const MutexLock lock(claim.mutex);
            claim.view = std::move(view);
            claim.refusal = std::move(refusal);
        }
        follower_.lookAt(name);
    });
}

void WorkspaceObjects::collect(const Json& object, Followed& known) {
    std::optional<controller::WorkspaceView> view;
    std::optional<Refusal> refusal;
    {
        const MutexLock lock(known.claim->mutex);
        view = known.claim->view;
        refusal = known.claim->refusal;
    }
    if (!view && !refusal) return;  // still under way
    known.claim.reset();
    if (view) {
        known.workspace = view->id;
        if (object.is_object() && makeSecret(object, known)) {
            publish(object, claimedStatus(object, *view, url_, formatRfc3339(clock_.wall())),
                    known);
        }
        return;
    }
    if (!object.is_object()) return;
    known.refused = refusal->wrong ? generationOf(object) : 0;
    known.again = clock_.now() + (refusal->wrong ? kRetryWrong : kRetry);
    publish(object, pendingStatus(object, *refusal, formatRfc3339(clock_.wall())), known);
}

/// Its content follows from the object, so one that is there is the one that is wanted.
bool WorkspaceObjects::makeSecret(const Json& object, Followed& known) {
    if (known.secret) return true;
    if (known.again && clock_.now() < *known.again) return false;
    const std::string token = auth::workspaceToken(secret_key_, {known.tenant, known.workspace});
    const std::string failure = follower_.create({.plural = "secrets", .ns = follower_.ns()},
                                                 secretOf(object, known.workspace, url_, token));
    known.secret = failure.empty();
    known.again.reset();
    if (known.secret) return true;
    known.again = clock_.now() + kRetry;
    publish(object, pendingStatus(object, {"SecretNotMade", failure}, formatRfc3339(clock_.wall())),
            known);
    return false;
}

void WorkspaceObjects::follow(const Json& object, Followed& known) {
    if (!makeSecret(object, known)) return;
    const std::string now = formatRfc3339(clock_.wall());
    try {
        const controller::WorkspaceView view =
            workspaces_.get(tenantOf(known.tenant), known.workspace);
        publish(object, claimedStatus(object, view, url_, now), known);
    } catch (const Error& e) {
        const bool unknown = e.code() == ErrorCode::NotFound;
        if (!unknown && e.code() != ErrorCode::Gone && e.code() != ErrorCode::SandboxLost) return;
        // A leader that has just begun may not have heard of it yet.
        if (unknown && workspaces_.list(everyTenant(), {}).unanswered > 0) return;
        publish(object, endedStatus(object, e.what(), now), known);
    }
}

void WorkspaceObjects::publish(const Json& object, const Json& status, Followed& known) {
    if (status == known.status) return;
    const TimePoint now = clock_.now();
    const bool moved = textIn(status, "phase") != textIn(known.status, "phase");
    if (known.wrote && now < *known.wrote + kStatusCalm && !(moved && known.trouble.empty()))
        return;
    known.wrote = now;
    if (!follower_.writeStatus(object, status, known.trouble)) return;
    follower_.tell(eventsOf(object, known.status, status, formatRfc3339(clock_.wall())));
    known.status = status;
}

bool WorkspaceObjects::end(const std::string& tenant, const std::string& workspace) {
    try {
        workspaces_.close(tenantOf(tenant), workspace);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound || e.code() == ErrorCode::Gone) return true;
        log_.warn("kubernetes.workspace_not_ended",
                  {{"workspace", workspace}, {"error", e.what()}});
        return false;
    }
    return true;
}

/// Workspaces whose objects went while no server looked, or another one led.
void WorkspaceObjects::endLeftovers() {
    controller::ListQuery query;
    do {
        const controller::Page<controller::WorkspaceView> page =
            workspaces_.list(everyTenant(), query);
        for (const controller::WorkspaceView& view : page.items) {
            const auto object = view.labels.find(kObjectLabel);
            if (object == view.labels.end() || follower_.has(object->second)) continue;
            log_.info("kubernetes.workspace_left", {{"workspace", view.id}});
            end(view.tenant, view.id);
        }
        query.cursor = page.next_cursor;
    } while (!query.cursor.empty());
}

}  // namespace hearth::kubernetes
