#include "controller/claims/Claimer.h"

#include <algorithm>
#include <optional>

#include "base/CrashPoint.h"
#include "base/Error.h"
#include "controller/claims/PoolChooser.h"
#include "controller/workspaces/AgentErrors.h"
#include "controller/workspaces/BindNote.h"
#include "pool/agent/connection/AgentMessages.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {
namespace {

constexpr auto kBindTimeout = std::chrono::seconds(2);
/// Refill and CPU weight are delayed until after the answer: at once they would take its CPU.
constexpr auto kBehind = std::chrono::milliseconds(2);
constexpr std::uint32_t kMostAttempts = 5;
/// For a claim that took longer, the pressure on the machine is recorded.
constexpr auto kSlow = std::chrono::milliseconds(50);
/// A claim that stood in line for no longer than this has not waited.
constexpr auto kInLine = std::chrono::milliseconds(1);

/// Returns the requested time, at most what the pool allows; zero means no limit.
std::chrono::milliseconds bounded(std::optional<std::chrono::milliseconds> asked,
                                  std::chrono::milliseconds standard,
                                  std::chrono::milliseconds most) {
    const std::chrono::milliseconds value = asked.value_or(standard);
    if (most.count() == 0) return value;
    return value.count() == 0 ? most : std::min(value, most);
}

/// Adds the claim's trace to work that it leaves to do.
WorkKey causedBy(const Claimer::Wanted& wanted, WorkKey key) {
    if (wanted.trace.sampled) key.cause = wanted.trace;
    return key;
}

}  // namespace

Claimer::Claimer(WorkspaceTable& table, const Supply& supply, const Epoch& epoch,
                 const pool::Fleet& fleet, WorkspaceTerminator& terminator, const History& history,
                 egress::EgressGateway& gateway)
    : table_(table),
      supply_(supply),
      epoch_(epoch),
      fleet_(fleet),
      terminator_(terminator),
      history_(history),
      gateway_(gateway) {}

Task<std::vector<Claimer::Claimed>> Claimer::claim(std::vector<Wanted> all) {
    requireAttainable(all);
    Order order;
    order.all = std::move(all);
    const Wanted& first = order.all.front();
    const Pool& pool = *first.pool;
    order.begin =
        first.request->started_at == TimePoint{} ? history_.clock.now() : first.request->started_at;
    order.network = BindingMaker::check(first);
    std::vector<std::string> ids;
    for (const Wanted& wanted : order.all) ids.push_back(wanted.workspace_id);
    for (; order.attempt <= kMostAttempts; ++order.attempt) {
        reserve(order);
        if (order.attempt == 1) {
            table_.quotas().admit(first.tenant, static_cast<std::uint32_t>(ids.size()),
                                  history_.clock.now());
            for (const Wanted& wanted : order.all) {
                order.bindings.push_back(bindings_.make(wanted, order.network));
            }
        }
        ask(order);
        Task<std::vector<pool::Member>> line = supply_.line.acquire(
            pool, {first.tenant, first.request->patience, first.tell_why, &order.scene}, ids);
        const std::vector<pool::Member> members = co_await line;
        order.picked = history_.clock.now();
        std::vector<Claimed> claimed = bindAll(order, members);
        if (!claimed.empty()) co_return claimed;
    }
    throw Error(ErrorCode::SandboxLost, "no sandbox of pool " + pool.name + " accepted the claim")
        .hint("try again");
}

void Claimer::requireAttainable(const std::vector<Wanted>& all) const {
    if (all.size() == 1) return;
    const Pool& pool = *all.front().pool;
    const std::string count = std::to_string(all.size());
    const std::size_t most = std::min(pool.spec.warm_max, pool.spec.max_members);
    if (all.size() > most) {
        throw Error(ErrorCode::InvalidSpec,
                    "pool " + pool.name + " is too small for " + count + " workspaces at once")
            .field("/count", "is " + count + ", and pool " + pool.name + " has at most " +
                                 std::to_string(most) + " ready at once");
    }
    const std::size_t devices = all.size() * pool.spec.gpu.count;
    if (devices > 0 && devices > supply_.gpus.fitting(pool.spec.gpu)) {
        throw Error(ErrorCode::InvalidSpec, "this machine has too few GPUs for " + count +
                                                " workspaces of pool " + pool.name + " at once")
            .field("/count", "needs " + std::to_string(devices) + " GPUs at once");
    }
}

void Claimer::reserve(Order& order) {
    // A workspace that took over the place and was lost at once has released it.
    if (!order.places.empty() && order.places.front().held()) return;
    const Wanted& first = order.all.front();
    const PoolSpec& spec = first.pool->spec;
    order.places = table_.reserve(first.tenant, first.pool->name, spec.per_tenant,
                                  demand(first, spec.limits, spec.gpu.count), order.all.size());
}

std::vector<Claimer::Claimed> Claimer::bindAll(Order& order,
                                               const std::vector<pool::Member>& members) {
    const Wanted& first = order.all.front();
    const std::string& pool = first.pool->name;
    std::vector<Claimed> out;
    std::size_t begun = 0;
    try {
        while (begun < members.size()) {
            const std::size_t at = begun++;
            const std::shared_ptr<Workspace> workspace = bindOne(order, at, members[at]);
            supply_.work.addAfter({WorkKind::Weight, members[at].id}, kBehind);
            if (!workspace && members.size() == 1) break;
            if (!workspace) {
                throw Error(ErrorCode::SandboxLost,
                            "a sandbox of pool " + pool + " did not accept the claim")
                    .hint("none of the workspaces was opened; try again, with a new key");
            }
            const TimePoint bound = history_.clock.now();
            const Times times{order.begin, order.asked, order.picked, bound};
            out.push_back(
                {workspace, ledgerOf(order.all[at], members[at], times, order.scene), bound});
        }
    } catch (...) {
        for (; begun < members.size(); ++begun) supply_.line.giveBack(members[begun]);
        for (const Claimed& claimed : out) {
            terminator_.end(claimed.workspace, EndReason::Failed, first.trace);
        }
        throw;
    }
    supply_.work.addAfter(causedBy(first, {WorkKind::Pool, pool}), kBehind);
    return out;
}

std::shared_ptr<Workspace> Claimer::bindOne(Order& order, std::size_t at,
                                            const pool::Member& member) {
    const Wanted& wanted = order.all[at];
    WorkspaceTable::Place& place = order.places[at];
    requireLanguage(*wanted.request, member);
    requireQuota(wanted, member, place, order.attempt > 1);
    const Attempt attempt{
        member, order.attempt, {order.begin, order.asked, order.picked, {}}, order.scene};
    return bind(wanted, order.bindings[at], attempt, place);
}

ClaimLedger Claimer::ledgerOf(const Wanted& wanted, const pool::Member& member, const Times& times,
                              const ClaimScene& scene) {
    ClaimLedger ledger;
    // A member made after the request came makes this a cold start.
    const bool cold = member.created_at > times.begin;
    const double waited = toMillis(times.picked - times.asked);
    // The time alone would count a claim whose thread had to wait for a processor.
    const bool queued = scene.place > 0 && times.picked - times.asked > kInLine;
    ledger.source = cold ? ClaimSource::Cold : queued ? ClaimSource::Queued : ClaimSource::Warm;
    ledger.pull_ms = toMillis(wanted.image.pull);
    ledger.unpack_ms = toMillis(wanted.image.unpack);
    if (cold) {
        ledger.create_ms = toMillis(member.start.create);
        ledger.warm_ms = toMillis(member.start.warm);
        ledger.queue_ms = std::max(0.0, waited - ledger.create_ms - ledger.warm_ms);
    } else {
        ledger.queue_ms = queued ? waited : 0;
        ledger.pick_ms = waited - ledger.queue_ms;
    }
    ledger.bind_ms = toMillis(times.bound - times.picked);
    ledger.total_ms = toMillis(times.bound - times.begin);
    return ledger;
}

void Claimer::ask(Order& order) const {
    order.asked = history_.clock.now();
    const pool::PoolCounts counts = supply_.warm.counts(order.all.front().pool->name);
    order.scene = {};
    order.scene.pool.ready = static_cast<std::uint32_t>(counts.ready);
    order.scene.pool.claimed = static_cast<std::uint32_t>(counts.claimed);
    order.scene.pool.creating = static_cast<std::uint32_t>(counts.creating + counts.warming);
}

ClaimStory Claimer::storyOf(const Wanted& wanted, const Attempt& attempt) const {
    Times times = attempt.times;
    times.bound = history_.clock.now();
    ClaimStory story{ledgerOf(wanted, attempt.member, times, attempt.scene), attempt.scene,
                     wanted.trace.trace_id};
    ClaimScene& scene = story.scene;
    scene.pool.unpacking =
        scene.place > 0 && supply_.breaker.unpacksSince(wanted.pool->name, times.begin);
    if (!story.scene.pressure && times.bound - times.begin > kSlow) {
        story.scene.pressure = hostPressure();
    }
    return story;
}

QuotaUse Claimer::demand(const Wanted& wanted, const pool::SandboxLimits& of, std::size_t gpus) {
    return demandOf(wanted.request->limits.of(of), gpus);
}

void Claimer::requireQuota(const Wanted& wanted, const pool::Member& member,
                           WorkspaceTable::Place& place, bool again) {
    try {
        place.resize(demand(wanted, member.limits,
                            member.gpus.size()));  // it may predate a change of its pool's limits
        if (member.gpus.empty()) return;
        QuotaLedger& quotas = table_.quotas();
        // A sandbox that refused the claim is not its tenant's fault.
        supply_.gpus.keep(member.id, again ? quotas.occupied(wanted.tenant, member.gpus.size())
                                           : quotas.occupy(wanted.tenant, member.gpus.size()));
    } catch (...) {
        supply_.line.giveBack(member);
        throw;
    }
}

void Claimer::requireLanguage(const WorkspaceRequest& request, const pool::Member& member) {
    if (!request.language) return;
    const std::vector<std::string>& known = member.agent->hello().languages;
    if (!pool::languageAmong(*request.language, known).empty()) return;
    supply_.line.giveBack(member);
    throw NoLanguage("pool " + member.pool + " has no", *request.language,
                     {known.begin(), known.end()});
}

std::shared_ptr<Workspace> Claimer::bind(const Wanted& wanted, const ClaimBinding& binding,
                                         const Attempt& attempt, WorkspaceTable::Place& place) {
    try {
        return tryBind(wanted, binding, attempt, place);
    } catch (...) {
        // It is claimed but has no workspace: nothing else would ever end it.
        terminator_.lost(attempt.member.id, "the claim failed");
        throw;
    }
}

bool Claimer::narrow(const ClaimLimits& asked, const pool::Member& member, WorkspaceFacts& facts) {
    if (!asked.within(member.limits)) {  // made before its pool's limits were raised
        terminator_.lost(member.id, "its limits are below those of its pool and of the claim");
        return false;
    }
    facts.limits = asked.of(member.limits);
    if (facts.limits == member.limits) return true;
    try {
        const std::optional<pool::LimitInUse> in_use =
            fleet_.runtime.narrow(member.id, facts.limits);
        if (in_use) throw usesMore(*in_use, asked);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound) throw;
        terminator_.lost(member.id, e.what());
        return false;
    } catch (const std::system_error& e) {
        terminator_.lost(member.id, std::string("its limits could not be set: ") + e.what());
        return false;
    }
    return true;
}

WorkspaceFacts Claimer::factsOf(const Wanted& wanted, const ClaimBinding& binding,
                                const pool::Member& member) const {
    WorkspaceFacts facts = binding.facts;
    facts.trace = wanted.trace;  // the binding may be of an earlier run
    facts.sandbox = member.id;
    facts.limits = member.limits;
    facts.gpus = member.gpus;
    facts.cpu_before_ns = member.start.cpu_ns;
    // In whole milliseconds, as in the note: deadlines are computed from it, also after a restart.
    facts.created = fromUnixMillis(toUnixMillis(history_.clock.wall()));
    facts.created_at = history_.clock.now();
    return facts;
}

agent::BindRequest Claimer::bindOf(const Wanted& wanted, const ClaimBinding& binding,
                                   const WorkspaceFacts& facts, std::uint32_t attempt) const {
    const WorkspaceRequest& request = *wanted.request;
    const PoolSpec& spec = wanted.pool->spec;
    agent::BindRequest bind = binding.bind;
    BindingMaker::addValues(request, bind);
    bind.epoch = epoch_.get();
    bind.attempt = attempt;
    bind.deadlines.idle_ends = !facts.pause_when_idle;
    const auto lifetime = bounded(request.max_lifetime, spec.max_lifetime, spec.max_lifetime);
    if (lifetime.count() > 0) bind.deadlines.expires_at = facts.created_at + lifetime;
    bind.deadlines.idle_timeout =
        bounded(request.idle_timeout, spec.idle_timeout, spec.max_lifetime);
    return bind;
}

bool Claimer::occupy(const ClaimLimits& limits, const pool::Member& member, WorkspaceFacts& facts,
                     agent::BindRequest& bind) {
    try {
        crashPoint("claim.before_mark");
        fleet_.marks.set(member.id);
        crashPoint("claim.after_mark");
        // After the mark: a narrowed sandbox serves no other claim, whatever happens here.
        if (!limits.empty()) {
            if (!narrow(limits, member, facts)) return false;
            crashPoint("claim.after_narrow");
            bind.cpus = pool::wholeCpus(facts.limits);
        }
        bind.note = bindNote(facts, gateway_.claimSeal());
        const agent::BindReply reply = member.agent->bind(bind, kBindTimeout);
        crashPoint("claim.after_bind");
        facts.created_at = reply.bound_at == TimePoint{} ? facts.created_at : reply.bound_at;
        gateway_.open(member.id, {facts.id, facts.tenant, facts.pool, facts.trace},
                      networkPolicy(facts), facts.keyring, *member.agent);
        return true;
    } catch (const agent::AgentError& e) {
        if (e.code() == "BOUND_ELSEWHERE") history_.metrics.doubleBindRefused();
        terminator_.lost(member.id, "the bind was refused: " + e.code());
        if (e.code() == "BAD_REQUEST") throw clientError(e);  // any other sandbox would refuse too
    } catch (const agent::AgentLost& e) {
        terminator_.lost(member.id, e.what());
    } catch (const std::system_error& e) {
        terminator_.lost(member.id, std::string("no claim mark: ") + e.what());
    }
    return false;
}

std::shared_ptr<Workspace> Claimer::tryBind(const Wanted& wanted, const ClaimBinding& binding,
                                            const Attempt& attempt, WorkspaceTable::Place& place) {
    const WorkspaceRequest& request = *wanted.request;
    const pool::Member& member = attempt.member;
    WorkspaceFacts facts = factsOf(wanted, binding, member);
    agent::BindRequest bind = bindOf(wanted, binding, facts, attempt.number);
    if (!occupy(request.limits, member, facts, bind)) return nullptr;

    auto workspace = std::make_shared<Workspace>(facts, member.agent, request.labels,
                                                 bind.deadlines, facts.created_at);
    // Before it is visible: its end must not be written ahead of its beginning.
    history_.journal.record(WorkspaceRecord{
        facts.id, facts.tenant, facts.pool, facts.sandbox, facts.claim_id, facts.fingerprint,
        facts.name, toUnixMillis(facts.created), std::nullopt, "", storyOf(wanted, attempt)});
    table_.insert(workspace, &place);
    history_.events.publish({.type = "workspace.created",
                             .resource = facts.id,
                             .pool = facts.pool,
                             .tenant = facts.tenant,
                             .reason = "claimed",
                             .message = "a workspace was bound",
                             .trace_id = facts.trace.trace_id,
                             .one_shot = facts.one_shot});
    return terminator_.confirm(workspace) ? workspace : nullptr;
}

}  // namespace hearth::controller
