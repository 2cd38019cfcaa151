#include "controller/services/PoolService.h"

#include <algorithm>

#include "base/Error.h"
#include "controller/spec/ClusterRules.h"

namespace hearth::controller {
namespace {

constexpr auto kDrainWait = std::chrono::seconds(60);
/// A sandbox that is being claimed is a workspace a moment later.
constexpr auto kEndAgain = std::chrono::milliseconds(50);

void require(const Principal& who, Role least) {
    if (who.atLeast(least)) return;
    throw Error(ErrorCode::Forbidden,
                least == Role::Admin ? "only an admin may do this" : "only an operator may do this")
        .hint("use a token with that role");
}

/// Refuses to change a pool that a cluster's object declares: both would overwrite each other.
void requireOurs(const PoolPtr& pool) {
    if (!pool || pool->object.empty()) return;
    throw Error(ErrorCode::Conflict,
                "pool " + pool->name + " is declared by an object of the cluster")
        .hint("change that object: kubectl edit sandboxpool " + pool->name);
}

}  // namespace

PoolService::PoolService(SpecStore& specs, PoolReconciler& reconciler, const Supply& supply,
                         WorkspaceTable& table, WorkspaceTerminator& terminator,
                         const History& history, RuntimeTraits runtime)
    : specs_(specs),
      reconciler_(reconciler),
      supply_(supply),
      table_(table),
      terminator_(terminator),
      history_(history),
      runtime_(std::move(runtime)) {}

bool PoolService::mayKnow(const Principal& who, const Pool& pool) const {
    return pool.on_demand.empty() || who.atLeast(Role::Operator) ||
           table_.holds(who.tenant, pool.name);
}

PoolStatus PoolService::statusFor(const Principal& who, const std::string& name) const {
    PoolStatus status = reconciler_.statuses().of(name);
    if (who.atLeast(Role::Operator)) return status;
    for (PoolCondition& condition : status.conditions) {
        const bool counts =
            condition.type == ConditionType::Ready || condition.type == ConditionType::Progressing;
        if (!counts && !condition.message.empty())
            condition.message = "only operators see the reason";
    }
    return status;
}

std::vector<PoolView> PoolService::list(const Principal& who) {
    std::vector<PoolView> views;
    for (PoolPtr& pool : specs_.all()) {
        if (!mayKnow(who, *pool)) continue;
        PoolStatus status = statusFor(who, pool->name);
        views.push_back({std::move(pool), std::move(status)});
    }
    return views;
}

PoolView PoolService::get(const Principal& who, const std::string& name) {
    PoolPtr pool = specs_.find(name);
    if (!pool || !mayKnow(who, *pool)) {
        throw specs_.noPool(name);
    }
    PoolStatus status = statusFor(who, name);
    return {std::move(pool), std::move(status)};
}

PoolView PoolService::store(const Principal& who, Pool pool, SpecStore::Mode mode,
                            std::optional<std::int64_t> if_match, bool& created) {
    const TimePoint begin = history_.clock.now();
    if (isOnDemandName(pool.name)) {
        throw Error(ErrorCode::InvalidSpec,
                    "pool names that begin with \"ondemand-\" are reserved for the server")
            .field("/metadata/name", "may not begin with ondemand-")
            .hint("declare a pool with another name and the image " + pool.spec.image);
    }
    if (pool.spec.on_idle == OnIdle::Pause && !runtime_.freezes) {
        throw Error(ErrorCode::InvalidSpec,
                    "the " + runtime_.name + " runtime cannot pause workspaces on this machine")
            .field("/spec/lifecycle/onIdle", "must be Reclaim here")
            .hint("pausing needs a control group freezer");
    }
    if (!pool.spec.runtime_class.empty() && !runtime_.in_cluster) {
        throw Error(ErrorCode::InvalidSpec,
                    "the " + runtime_.name + " runtime has no runtime classes")
            .field("/spec/template/runtimeClass", "must be empty here")
            .hint(
                "runtime classes exist only in a cluster: run the server with --runtime "
                "kubernetes");
    }
    if (runtime_.in_cluster) requireFitsCluster(pool.spec, runtime_.own_claim);
    table_.quotas().requireFloorsFit(pool.name, pool.spec.max_members);
    const PoolPtr before = specs_.find(pool.name);
    if (!who.tenant.empty()) requireOurs(before);
    // A file's pool waits for its devices: not all may be found yet at the start.
    if (!who.tenant.empty() && (!before || before->spec.gpu != pool.spec.gpu)) {
        if (std::optional<FieldError> wrong = supply_.gpus.refusal(pool.spec.gpu)) {
            throw Error(ErrorCode::InvalidSpec,
                        "this machine has no GPUs for pool " + pool.name + ": " + wrong->reason)
                .field(wrong->pointer, wrong->reason)
                .hint("hearth get gpus shows what there is");
        }
    }
    PoolPtr kept = specs_.put(std::move(pool), mode, if_match, created);
    if (created) history_.metrics.bornPool(kept->name);
    const bool changed = created || !before || before->generation != kept->generation;
    if (changed) {
        history_.events.publish({.type = created ? "pool.declared" : "pool.changed",
                                 .resource = kept->name,
                                 .pool = kept->name,
                                 .trace_id = who.trace.trace_id});
    }
    history_.log.info("pool.applied", {{"pool", kept->name},
                                       {"tenant", who.tenant},
                                       {"result", created   ? "created"
                                                  : changed ? "changed"
                                                            : "unchanged"},
                                       {"generation", kept->generation},
                                       {"seconds", toSeconds(history_.clock.now() - begin)},
                                       {"trace", who.trace.trace_id}});
    supply_.work.add({WorkKind::Pool, kept->name});
    PoolStatus status = reconciler_.statuses().first(*kept);
    return {std::move(kept), std::move(status)};
}

void PoolService::declare(const Pool& pool) {
    Principal nobody;
    nobody.tenant.clear();
    bool created = false;
    store(nobody, pool, SpecStore::Mode::CreateOrReplace, std::nullopt, created);
}

PoolView PoolService::create(const Principal& who, const Json& document) {
    require(who, Role::Operator);
    bool created = false;
    return store(who, parsePool(document), SpecStore::Mode::Create, std::nullopt, created);
}

PoolView PoolService::put(const Principal& who, const std::string& name, const Json& document,
                          std::optional<std::int64_t> if_match, bool& created) {
    require(who, Role::Operator);
    Pool pool = parsePool(document);
    if (pool.name != name) {
        throw Error(ErrorCode::InvalidArgument, "the manifest names pool " + pool.name)
            .field("/metadata/name", "must be " + name);
    }
    return store(who, std::move(pool), SpecStore::Mode::CreateOrReplace, if_match, created);
}

PoolView PoolService::patch(const Principal& who, const std::string& name, const Json& merge,
                            std::optional<std::int64_t> if_match) {
    require(who, Role::Operator);
    Json document = poolDocument(name, get(who, name).pool->spec);
    document.merge_patch(merge);
    bool created = false;
    Pool pool = parsePool(document);
    if (pool.name != name) {
        throw Error(ErrorCode::InvalidArgument, "a pool cannot be renamed")
            .field("/metadata/name", "must be " + name);
    }
    return store(who, std::move(pool), SpecStore::Mode::Replace, if_match, created);
}

void PoolService::remove(const Principal& who, const std::string& name) {
    require(who, Role::Operator);
    requireOurs(get(who, name).pool);
    markDeleting(who, name);
}

void PoolService::withdraw(const std::string& name) {
    Principal nobody;
    nobody.tenant.clear();
    if (specs_.find(name)) markDeleting(nobody, name);
}

void PoolService::markDeleting(const Principal& who, const std::string& name) {
    const TimePoint begin = history_.clock.now();
    specs_.markDeleting(name);
    history_.events.publish(
        {.type = "pool.deleting", .resource = name, .pool = name, .trace_id = who.trace.trace_id});
    history_.log.info("pool.deleting", {{"pool", name},
                                        {"tenant", who.tenant},
                                        {"seconds", toSeconds(history_.clock.now() - begin)},
                                        {"trace", who.trace.trace_id}});
    supply_.work.add({WorkKind::Pool, name});
}

void PoolService::endSandbox(const pool::Member& member, EndReason reason,
                             const TraceContext& trace) {
    if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(member.id)) {
        workspace->awaitResults();
        terminator_.end(workspace, reason, trace);
    } else if (!terminator_.endExpected(member.id, reason, trace)) {
        terminator_.retire(member, reason, trace);
    }
}

std::uint32_t PoolService::endAndWait(const std::vector<pool::Member>& members,
                                      const TraceContext& trace) {
    const TimePoint until = history_.clock.now() + kDrainWait;
    for (const pool::Member& member : members) endSandbox(member, EndReason::Drain, trace);
    for (const pool::Member& member : members) {
        for (std::uint64_t seen = supply_.warm.removals();
             supply_.warm.find(member.id) && history_.clock.now() < until;
             seen = supply_.warm.removals()) {
            supply_.warm.awaitRemoval(seen, kEndAgain);
            endSandbox(member, EndReason::Drain, trace);
        }
    }
    return static_cast<std::uint32_t>(std::count_if(
        members.begin(), members.end(),
        [this](const pool::Member& member) { return !supply_.warm.find(member.id); }));
}

std::uint32_t PoolService::drain(const Principal& who, const std::string& name) {
    require(who, Role::Operator);
    const TimePoint begin = history_.clock.now();
    get(who, name);
    const std::uint32_t ended = endAndWait(supply_.warm.members(name), who.trace);
    history_.log.info("pool.drained", {{"pool", name},
                                       {"tenant", who.tenant},
                                       {"sandboxes", ended},
                                       {"seconds", toSeconds(history_.clock.now() - begin)},
                                       {"trace", who.trace.trace_id}});
    return ended;
}

std::uint32_t PoolService::drainAll(const Principal& who) {
    require(who, Role::Admin);
    const TimePoint begin = history_.clock.now();
    reconciler_.drain();
    const std::uint32_t ended = endAndWait(supply_.warm.all(), who.trace);
    history_.log.info("server.drained", {{"tenant", who.tenant},
                                         {"sandboxes", ended},
                                         {"seconds", toSeconds(history_.clock.now() - begin)},
                                         {"trace", who.trace.trace_id}});
    return ended;
}

void PoolService::undrainAll(const Principal& who) {
    require(who, Role::Admin);
    const TimePoint begin = history_.clock.now();
    reconciler_.undrain();
    history_.log.info("server.undrained", {{"tenant", who.tenant},
                                           {"seconds", toSeconds(history_.clock.now() - begin)},
                                           {"trace", who.trace.trace_id}});
}

bool PoolService::isSuspect(const pool::Member& member) const {
    if (member.phase != pool::Phase::Claimed) return false;
    const std::shared_ptr<Workspace> workspace = table_.bySandbox(member.id);
    return workspace ? workspace->silentSince().has_value() : member.unasked;
}

SandboxView PoolService::view(const pool::Member& member) const {
    SandboxView view;
    view.id = member.id;
    view.pool = member.pool;
    view.phase = isSuspect(member) ? "Suspect" : pool::kPhases.of(member.phase);
    view.generation = member.generation;
    if (!member.workspace.empty()) view.workspace_id = member.workspace;
    view.tenant = member.tenant;
    view.created_at = formatRfc3339(member.created);
    if (member.ready) view.ready_at = formatRfc3339(*member.ready);
    view.image = member.image;
    view.runtime = runtime_.name;
    return view;
}

std::vector<SandboxView> PoolService::sandboxes(const Principal& who,
                                                const std::optional<std::string>& pool) {
    require(who, Role::Operator);
    if (pool) get(who, *pool);
    std::vector<SandboxView> views;
    for (const pool::Member& member : pool ? supply_.warm.members(*pool) : supply_.warm.all()) {
        views.push_back(view(member));
    }
    return views;
}

SandboxView PoolService::sandbox(const Principal& who, const std::string& id) {
    require(who, Role::Operator);
    const std::optional<pool::Member> member = supply_.warm.find(id);
    if (!member) throw Error(ErrorCode::NotFound, "no sandbox " + id);
    return view(*member);
}

void PoolService::destroySandbox(const Principal& who, const std::string& id) {
    require(who, Role::Operator);
    const TimePoint begin = history_.clock.now();
    const std::optional<pool::Member> member = supply_.warm.find(id);
    if (!member) throw Error(ErrorCode::NotFound, "no sandbox " + id);
    endSandbox(*member, EndReason::Operator, who.trace);
    if (const auto now = supply_.warm.find(id);
        now && now->phase == pool::Phase::Claimed && !table_.bySandbox(id)) {
        throw Error(ErrorCode::Conflict, "sandbox " + id + " is just being claimed")
            .hint("try again in a moment: it is then a workspace, which you can end")
            .retryAfter(std::chrono::seconds(1));
    }
    history_.log.info("sandbox.deleted", {{"sandbox", id},
                                          {"pool", member->pool},
                                          {"tenant", who.tenant},
                                          {"seconds", toSeconds(history_.clock.now() - begin)},
                                          {"trace", who.trace.trace_id}});
    supply_.work.add({WorkKind::Pool, member->pool});
}

}  // namespace hearth::controller
