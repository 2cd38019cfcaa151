#include "api/kubernetes/WorkspaceObjects.h"

#include <algorithm>
#include <utility>

#include "api/auth/WorkspaceToken.h"
#include "base/Error.h"

namespace hearth::kubernetes {
namespace {

/// The most claims at once, of all and of one tenant; further objects do not enter a pool's line.
constexpr std::size_t kMostClaims = 64;
constexpr std::size_t kMostOfTenant = 8;
/// A claim blocks one only while it talks with an agent.
constexpr std::size_t kClaimThreads = 4;
constexpr auto kFirstRetry = std::chrono::seconds(2);
constexpr auto kLastRetry = std::chrono::seconds(60);
/// The least time between two writes of one status.
constexpr auto kStatusCalm = std::chrono::seconds(1);

controller::Principal tenantOf(const std::string& tenant) {
    return {.tenant = tenant, .token_id = {}};
}

controller::Principal everyTenant() {
    return {.role = controller::Role::Admin, .token_id = {}};
}

/// Returns the reason for a claim that is tried again.
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

bool isOf(const controller::WorkspaceView& view, const std::string& uid) {
    const auto label = view.labels.find(kObjectLabel);
    return label != view.labels.end() && label->second == uid;
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
      executor_(std::in_place, clock, kClaimThreads, "object-claims"),
      follower_(std::move(cluster), "workspaces", clock, log,
                {[this](const std::string& name, const Json* object) { return sync(name, object); },
                 [this] { endLeftovers(); }}) {}

WorkspaceObjects::~WorkspaceObjects() {
    stop();
}

void WorkspaceObjects::stop() {
    follower_.stop();
    executor_.reset();
    for (auto& [name, known] : followed_) drop(known);
}

void WorkspaceObjects::drop(Followed& known) {
    if (!known.claim) return;
    known.claim.reset();
    known.task.reset();
    --claims_;
    if (--under_way_[known.tenant] == 0) under_way_.erase(known.tenant);
}

bool WorkspaceObjects::sync(const std::string& name, const Json* object) {
    Followed& known = followed_[name];
    const std::string uid = object == nullptr ? "" : pool::kubernetes::metadataText(*object, "uid");
    if (known.uid != uid) {
        // A workspace that the claim gets after this look is ended in the next round.
        if (known.claim) collect(Json(), known);
        drop(known);
        if (!end(known)) return true;
        known = {};
    }
    if (object == nullptr) {
        followed_.erase(name);
        return false;
    }
    if (known.uid.empty()) {
        known.uid = uid;
        known.status = object->value("status", Json::object());
        known.workspace = textIn(known.status, "workspace");
        known.tenant = textIn(known.status, "tenant");
        known.secret = !known.workspace.empty();
    }
    if (textIn(known.status, "phase") == "Gone") return true;
    Json seen = *object;  // with the last known status: the watch may lag
    seen["status"] = known.status;
    see(seen, known);
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
    if (claims_ >= kMostClaims) return;
    known.refused = 0;
    try {
        const WorkspaceWish wish = wishOf(object, secret_key_);
        const auto others = under_way_.find(wish.tenant);
        if (others != under_way_.end() && others->second >= kMostOfTenant) return;
        beginClaim(pool::kubernetes::metadataText(object, "name"), wish, known);
    } catch (const Error& e) {
        known.refused = generationOf(object);
        known.again = clock_.now() + kLastRetry;
        publish(object, pendingStatus(object, refusalOf(e, "Failed"), formatRfc3339(clock_.wall())),
                known);
    }
}

void WorkspaceObjects::beginClaim(const std::string& name, const WorkspaceWish& wish,
                                  Followed& known) {
    known.tenant = wish.tenant;
    known.claim = std::make_shared<Claim>();
    known.task = executor_->start(wish.tenant, carry(name, wish, known.claim));
    ++claims_;
    ++under_way_[known.tenant];
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<> WorkspaceObjects::carry(std::string name, WorkspaceWish wish, std::shared_ptr<Claim> claim) {
    // NOLINTEND(performance-unnecessary-value-param)
    std::optional<controller::WorkspaceView> view;
    std::optional<Refusal> refusal;
    bool ended = false;
    try {  // the top of this task
        controller::WorkspaceRequest request = wish.request;
        request.started_at = clock_.now();
        Task<controller::WorkspaceView> creating =
            workspaces_.create(tenantOf(wish.tenant), std::move(request));
        view = co_await creating;
    } catch (const Error& e) {
        refusal = refusalOf(e, "Waiting");
        if (!refusal->wrong) refusal->reason = waitsFor(e.code());
        ended = e.code() == ErrorCode::Gone;
        // The spec was changed after a claim whose result never reached the status.
        if (e.code() == ErrorCode::IdempotencyMismatch) refusal->wrong = true;
    } catch (const std::exception& e) {
        refusal = Refusal{"Failed", e.what()};
    }
    {
        const MutexLock lock(claim->mutex);
        claim->view = std::move(view);
        claim->refusal = std::move(refusal);
        claim->ended = ended;
    }
    follower_.lookAt(name);
}

void WorkspaceObjects::collect(const Json& object, Followed& known) {
    std::optional<controller::WorkspaceView> view;
    std::optional<Refusal> refusal;
    bool ended = false;
    {
        const MutexLock lock(known.claim->mutex);
        view = known.claim->view;
        refusal = known.claim->refusal;
        ended = known.claim->ended;
    }
    if (!view && !refusal) return;  // the claim still runs
    drop(known);
    const std::string now = formatRfc3339(clock_.wall());
    if (view) {
        known.workspace = view->id;
        known.certain = true;
        known.again.reset();
        known.delay = {};
        if (object.is_object() && makeSecret(object, known)) {
            publish(object,
                    claimedStatus(object, *view, url_, secretName(object, secret_key_), now),
                    known);
        }
        return;
    }
    if (!object.is_object()) return;
    if (ended) return publish(object, endedStatus(object, refusal->message, now), known);
    known.refused = refusal->wrong ? generationOf(object) : 0;
    later(known);
    publish(object, pendingStatus(object, *refusal, now), known);
}

void WorkspaceObjects::later(Followed& known) const {
    known.delay = std::clamp<std::chrono::seconds>(known.delay * 2, kFirstRetry, kLastRetry);
    known.again = clock_.now() + known.delay;
}

/// Makes the Secret. Its content follows from the object, so an existing one is the right one.
bool WorkspaceObjects::makeSecret(const Json& object, Followed& known) {
    if (known.secret) return true;
    if (known.again && clock_.now() < *known.again) return false;
    const std::string token = auth::workspaceToken(secret_key_, {known.tenant, known.workspace});
    const std::string failure = follower_.create(
        {.plural = "secrets", .ns = follower_.ns()},
        secretOf(object, secretName(object, secret_key_), {url_, known.workspace, token}));
    known.secret = failure.empty();
    if (known.secret) return true;
    later(known);
    publish(object, pendingStatus(object, {"SecretNotMade", failure}, formatRfc3339(clock_.wall())),
            known);
    return false;
}

void WorkspaceObjects::follow(const Json& object, Followed& known) {
    const std::string now = formatRfc3339(clock_.wall());
    try {
        const controller::WorkspaceView view =
            workspaces_.get(tenantOf(known.tenant), known.workspace);
        if (!known.certain && !isOf(view, known.uid)) {
            known.workspace.clear();  // this server's own claim finds the right one
            known.secret = false;
            return;
        }
        known.certain = true;
        if (!makeSecret(object, known)) return;
        publish(object, claimedStatus(object, view, url_, secretName(object, secret_key_), now),
                known);
    } catch (const Error& e) {
        const bool unknown = e.code() == ErrorCode::NotFound;
        if (!unknown && e.code() != ErrorCode::Gone && e.code() != ErrorCode::SandboxLost) return;
        // A new leader may not know this workspace yet.
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
    follower_.tell(workspaceEvents(object, known.status, status, formatRfc3339(clock_.wall())));
    known.status = status;
}

bool WorkspaceObjects::end(const Followed& known) {
    // endLeftovers() finds a workspace that is not certain by its label.
    return known.workspace.empty() || !known.certain || close(known.tenant, known.workspace);
}

bool WorkspaceObjects::close(const std::string& tenant, const std::string& workspace) {
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

/// Ends workspaces whose objects were deleted while no server ran, or another replica led.
void WorkspaceObjects::endLeftovers() {
    const std::set<std::string> there = follower_.uids();
    controller::ListQuery query;
    do {
        const controller::Page<controller::WorkspaceView> page =
            workspaces_.list(everyTenant(), query);
        for (const controller::WorkspaceView& view : page.items) {
            const auto object = view.labels.find(kObjectLabel);
            if (object == view.labels.end() || there.contains(object->second)) continue;
            log_.info("kubernetes.workspace_left", {{"workspace", view.id}});
            close(view.tenant, view.id);
        }
        query.cursor = page.next_cursor;
    } while (!query.cursor.empty());
}

}  // namespace hearth::kubernetes
