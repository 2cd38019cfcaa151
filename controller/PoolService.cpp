#include "controller/PoolService.h"

#include <algorithm>
#include <thread>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr auto kDrainWait = std::chrono::seconds(60);
constexpr auto kDrainPoll = std::chrono::milliseconds(5);

void require(const Principal& who, Role least) {
    if (who.atLeast(least)) return;
    throw Error(ErrorCode::Forbidden,
                least == Role::Admin ? "only an admin may do this" : "only an operator may do this")
        .hint("use a token with that role");
}

}  // namespace

PoolService::PoolService(SpecStore& specs, PoolReconciler& reconciler, pool::WarmPool& warm,
                         WorkspaceTable& table, Endings& endings, EventLog& events, WorkQueue& work,
                         metrics::Metrics& metrics, std::string runtime, const Clock& clock)
    : specs_(specs),
      reconciler_(reconciler),
      warm_(warm),
      table_(table),
      endings_(endings),
      events_(events),
      work_(work),
      metrics_(metrics),
      runtime_(std::move(runtime)),
      clock_(clock) {}

bool PoolService::mayKnow(const Principal& who, const Pool& pool) const {
    return pool.on_demand.empty() || who.atLeast(Role::Operator) ||
           table_.holds(who.tenant, pool.name);
}

PoolStatus PoolService::statusFor(const Principal& who, const std::string& name) const {
    PoolStatus status = reconciler_.status(name);
    if (who.atLeast(Role::Operator)) return status;
    for (Condition& condition : status.conditions) {
        const bool counts = condition.type == "Ready" || condition.type == "Progressing";
        if (!counts && !condition.message.empty()) condition.message = "an operator is told why";
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

PoolView PoolService::store(Pool pool, SpecStore::Mode mode, std::optional<std::int64_t> if_match,
                            bool& created) {
    if (isOnDemandName(pool.name)) {
        throw Error(ErrorCode::InvalidSpec,
                    "names of pools that begin with \"ondemand-\" are the server's")
            .field("/metadata/name", "may not begin with ondemand-")
            .hint("declare a pool of another name with image " + pool.spec.image);
    }
    const PoolPtr before = specs_.find(pool.name);
    PoolPtr kept = specs_.put(std::move(pool), mode, if_match, created);
    if (created) metrics_.bornPool(kept->name);
    if (created || !before || before->generation != kept->generation) {
        events_.publish({.type = created ? "pool.declared" : "pool.changed",
                         .resource = kept->name,
                         .pool = kept->name});
    }
    work_.add({"pool", kept->name});
    PoolStatus status = reconciler_.firstStatus(*kept);
    return {std::move(kept), std::move(status)};
}

void PoolService::declare(const Pool& pool) {
    bool created = false;
    store(pool, SpecStore::Mode::CreateOrReplace, std::nullopt, created);
}

PoolView PoolService::create(const Principal& who, const Json& document) {
    require(who, Role::Operator);
    bool created = false;
    return store(parsePool(document), SpecStore::Mode::Create, std::nullopt, created);
}

PoolView PoolService::put(const Principal& who, const std::string& name, const Json& document,
                          std::optional<std::int64_t> if_match, bool& created) {
    require(who, Role::Operator);
    Pool pool = parsePool(document);
    if (pool.name != name) {
        throw Error(ErrorCode::InvalidArgument, "the manifest names pool " + pool.name)
            .field("/metadata/name", "must be " + name);
    }
    return store(std::move(pool), SpecStore::Mode::CreateOrReplace, if_match, created);
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
    return store(std::move(pool), SpecStore::Mode::Replace, if_match, created);
}

void PoolService::remove(const Principal& who, const std::string& name) {
    require(who, Role::Operator);
    get(who, name);
    specs_.markDeleting(name);
    events_.publish({.type = "pool.deleting", .resource = name, .pool = name});
    work_.add({"pool", name});
}

std::uint32_t PoolService::endAndWait(const std::vector<pool::Member>& members) {
    for (const pool::Member& member : members) {
        if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(member.id)) {
            endings_.end(workspace, "drain");
        } else {
            endings_.retire(member, "drain");
        }
    }
    const TimePoint until = clock_.now() + kDrainWait;
    for (const pool::Member& member : members) {
        while (warm_.find(member.id) && clock_.now() < until) {
            std::this_thread::sleep_for(kDrainPoll);
        }
    }
    return static_cast<std::uint32_t>(
        std::count_if(members.begin(), members.end(),
                      [this](const pool::Member& member) { return !warm_.find(member.id); }));
}

std::uint32_t PoolService::drain(const Principal& who, const std::string& name) {
    require(who, Role::Operator);
    get(who, name);
    return endAndWait(warm_.members(name));
}

std::uint32_t PoolService::drainAll(const Principal& who) {
    require(who, Role::Admin);
    reconciler_.stopRefill();
    return endAndWait(warm_.all());
}

SandboxView PoolService::view(const pool::Member& member) const {
    SandboxView view;
    view.id = member.id;
    view.pool = member.pool;
    view.phase = std::string(pool::phaseName(member.phase));
    view.generation = member.generation;
    if (!member.workspace.empty()) view.workspace_id = member.workspace;
    view.tenant = member.tenant;
    view.created_at = formatRfc3339(member.created);
    if (member.ready) view.ready_at = formatRfc3339(*member.ready);
    view.image = member.image;
    view.runtime = runtime_;
    return view;
}

std::vector<SandboxView> PoolService::sandboxes(const Principal& who,
                                                const std::optional<std::string>& pool) {
    require(who, Role::Operator);
    if (pool) get(who, *pool);
    std::vector<SandboxView> views;
    for (const pool::Member& member : pool ? warm_.members(*pool) : warm_.all()) {
        views.push_back(view(member));
    }
    return views;
}

SandboxView PoolService::sandbox(const Principal& who, const std::string& id) {
    require(who, Role::Operator);
    const std::optional<pool::Member> member = warm_.find(id);
    if (!member) throw Error(ErrorCode::NotFound, "no sandbox " + id);
    return view(*member);
}

void PoolService::destroySandbox(const Principal& who, const std::string& id) {
    require(who, Role::Operator);
    const std::optional<pool::Member> member = warm_.find(id);
    if (!member) throw Error(ErrorCode::NotFound, "no sandbox " + id);
    if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(id)) {
        endings_.end(workspace, "deleted");
    } else {
        endings_.retire(*member, "deleted");
    }
    work_.add({"pool", member->pool});
}

}  // namespace hearth::controller
