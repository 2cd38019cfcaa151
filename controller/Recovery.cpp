#include "controller/Recovery.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Mutex.h"
#include "controller/layers/LayerBuilder.h"
#include "controller/spec/PrewarmExecution.h"
#include "controller/spec/TemplateHash.h"
#include "controller/workspaces/BindNote.h"

namespace hearth::controller {
namespace {

/// Limits the network to what its pool offers now, whatever its claim was given.
void narrowToPool(WorkspaceFacts& facts, const PoolPtr& pool) {
    facts.network = std::min(facts.network, pool ? pool->spec.network : egress::NetworkMode::None);
    if (facts.network == egress::NetworkMode::Egress) {
        facts.allow.push_back(pool->spec.network_allow);
    }
}

constexpr unsigned kAskers = 8;
/// All agents together get this many times the patience with one, at most.
constexpr int kDoorsOpenWithin = 4;
/// How often a silent agent is asked on its existing connection.
constexpr unsigned kTouches = 3;
constexpr const char* kEpochKey = "epoch";

/// Returns whether the pool's prewarm command ran to its end: the leftovers of an interrupted one
/// are unknown. Interpreters are restored by themselves.
bool warmedUp(const agent::Hello& hello, const PoolSpec& spec) {
    if (spec.prewarm_command.empty()) return true;
    return std::any_of(hello.executions.begin(), hello.executions.end(), [](const auto& known) {
        return known.id == kPrewarmExecution && !known.running;
    });
}

/// Parses a whole number; nullopt for any other text: old notes may be damaged.
template <typename Number>
std::optional<Number> parseNumber(const std::string& text) {
    Number number{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

/// Orders the sandboxes so that tenants take turns: one tenant's silent agents do not use up the
/// time in which the others are asked. Sandboxes without a workspace count as one more tenant.
void takeTurns(std::vector<pool::SandboxInfo>& found,
               const std::map<pool::SandboxId, WorkspaceRecord>& open) {
    std::map<std::string, std::size_t> asked;
    std::map<pool::SandboxId, std::size_t> turns;
    for (const pool::SandboxInfo& info : found) {
        const auto record = open.find(info.id);
        turns[info.id] = asked[record == open.end() ? "" : record->second.tenant]++;
    }
    std::stable_sort(found.begin(), found.end(),
                     [&](const pool::SandboxInfo& a, const pool::SandboxInfo& b) {
                         return turns.at(a.id) < turns.at(b.id);
                     });
}

bool hasUnrecorded(const agent::Hello& hello, Journal& journal) {
    return std::any_of(hello.executions.begin(), hello.executions.end(), [&](const auto& known) {
        return known.id != kPrewarmExecution && !journal.hasExecution(known.id);
    });
}

}  // namespace

Recovery::Recovery(const pool::Fleet& fleet, AgentConnector& agents, SpecStore& specs,
                   WorkspaceTable& table, GpuLedger& gpus, ExecutionStarter& executions,
                   const History& history, egress::EgressGateway& gateway)
    : fleet_(fleet),
      agents_(agents),
      specs_(specs),
      table_(table),
      gpus_(gpus),
      executions_(executions),
      history_(history),
      gateway_(gateway) {}

Recovery::Outcome Recovery::run(std::vector<pool::SandboxInfo> found,
                                std::chrono::milliseconds patience) {
    const TimePoint begin = history_.clock.now();
    agents_.epoch().set(1 + storedEpoch());

    std::map<pool::SandboxId, WorkspaceRecord> open;
    try {
        open = openWorkspaces();
    } catch (const std::exception& e) {  // the marks tell which are claimed
        history_.log.error("recovery.history_unknown", {{"error", e.what()}});
    }
    for (const pool::SandboxInfo& info : found) {
        if (info.claimed) fleet_.marks.set(info.id);  // another server's marks may be missing here
    }
    takeTurns(found, open);
    auto answers = askAll(found, patience);
    raiseEpoch(answers);

    // A claim whose bind was not answered in time may hold two sandboxes: the client knows the
    // later attempt, so the earlier one is given up.
    const auto attempt = [&](const pool::SandboxInfo& info) {
        const std::shared_ptr<agent::AgentClient>& agent = answers[info.id].agent;
        if (!agent) return 0U;
        const std::optional<agent::Binding>& binding = agent->hello().binding;
        return binding ? binding->attempt : 0U;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const pool::SandboxInfo& a, const pool::SandboxInfo& b) {
                         return attempt(a) > attempt(b);
                     });

    Outcome outcome;
    for (const pool::SandboxInfo& info : found) settle(info, answers[info.id], open, outcome);
    answers.clear();
    try {
        closeHistory();
    } catch (const std::exception& e) {  // the next start closes it
        history_.log.error("recovery.history_left_open", {{"error", e.what()}});
    }
    history_.log.info("recovery.done", {{"epoch", agents_.epoch().get()},
                                        {"workspaces", outcome.workspaces},
                                        {"warm", outcome.warm},
                                        {"silent", outcome.silent.size()},
                                        {"swept", outcome.swept},
                                        {"seconds", toSeconds(history_.clock.now() - begin)}});
    return outcome;
}

void Recovery::raiseEpoch(const std::map<pool::SandboxId, Answer>& answers) {
    std::uint64_t highest = agents_.epoch().get();
    bool any = false;
    for (const auto& [id, answer] : answers) {
        if (!answer.agent) continue;
        any = true;
        highest = std::max(highest, answer.agent->hello().highest_epoch);
    }
    // This server's hello hides whether an agent had already met this number before.
    if (any) ++highest;
    agents_.epoch().set(highest);
    storeEpoch(highest);
}

void Recovery::settle(const pool::SandboxInfo& info, const Answer& answer,
                      const std::map<pool::SandboxId, WorkspaceRecord>& open, Outcome& outcome) {
    if (answer.later && expect(info, open)) {
        outcome.silent.push_back(info.id);
        return;
    }
    Verdict verdict = Verdict::Swept;
    try {
        if (answer.agent) verdict = place(info, answer.agent);
    } catch (const std::exception& e) {
        // The fault is the server's, not the sandbox's: the sandbox is asked again.
        history_.log.warn("recovery.put_off", {{"sandbox", info.id}, {"error", e.what()}});
        if (expect(info, open)) {
            outcome.silent.push_back(info.id);
            return;
        }
    }
    switch (verdict) {
        case Verdict::Claimed:
            ++outcome.workspaces;
            break;
        case Verdict::Warm:
            ++outcome.warm;
            break;
        case Verdict::Swept:
            ++outcome.swept;
    }
}

std::uint64_t Recovery::storedEpoch() const {
    try {
        return parseNumber<std::uint64_t>(history_.journal.meta(kEpochKey)).value_or(0);
    } catch (const std::exception& e) {  // the agents know it as well
        history_.log.error("recovery.epoch_unknown", {{"error", e.what()}});
        return 0;
    }
}

void Recovery::storeEpoch(std::uint64_t epoch) {
    try {
        history_.journal.setMeta(kEpochKey, std::to_string(epoch));
    } catch (const Error& e) {
        // Live agents know it as well; a full disk must not keep the server from starting.
        history_.log.warn("recovery.epoch_not_stored", {{"epoch", epoch}, {"error", e.what()}});
    }
}

std::map<pool::SandboxId, Recovery::Answer> Recovery::askAll(
    const std::vector<pool::SandboxInfo>& found, std::chrono::milliseconds patience) {
    std::map<pool::SandboxId, Answer> answers;
    Mutex mutex;
    std::atomic<std::size_t> next{0};
    const auto until = std::chrono::steady_clock::now() + kDoorsOpenWithin * patience;
    std::vector<std::jthread> askers;
    for (unsigned i = 0; i < kAskers; ++i) {
        askers.emplace_back([&] {
            for (std::size_t at = next++; at < found.size(); at = next++) {
                if (!found[at].alive) continue;
                // The server opens however many agents are silent; the rest are asked after that.
                Answer answer{nullptr, true};
                if (std::chrono::steady_clock::now() < until) answer = askOnce(found[at], patience);
                const MutexLock lock(mutex);
                answers.emplace(found[at].id, std::move(answer));
            }
        });
    }
    askers.clear();
    return answers;
}

Recovery::Answer Recovery::askOnce(const pool::SandboxInfo& info,
                                   std::chrono::milliseconds patience) {
    const pool::SandboxId& id = info.id;
    try {
        return {ask(info, patience), false};
    } catch (const agent::AgentError& e) {
        history_.log.warn("recovery.refused", {{"sandbox", id}, {"code", e.code()}});
    } catch (const agent::AgentLost& e) {
        history_.log.warn("recovery.no_answer", {{"sandbox", id}, {"error", e.what()}});
        return {nullptr, e.loss() != agent::Loss::Broken};
    } catch (const std::exception& e) {
        history_.log.warn("recovery.no_answer", {{"sandbox", id}, {"error", e.what()}});
    }
    return {nullptr, true};
}

std::shared_ptr<agent::AgentClient> Recovery::ask(const pool::SandboxInfo& info,
                                                  std::chrono::milliseconds patience) {
    // A sandbox that was paused when the server ended cannot answer.
    if (info.frozen && !fleet_.runtime.thaw(info.id)) {
        history_.log.warn("recovery.not_thawed", {{"sandbox", info.id}});
    }
    // Tries twice: if the stored epoch is too low, the first refusal tells the right one.
    for (bool again = false;; again = true) {
        try {
            return agents_.connect(info.id, patience);
        } catch (const agent::AgentError& e) {
            const auto highest = e.details().find("highestEpoch");
            if (again || e.code() != "STALE_EPOCH" || highest == e.details().end() ||
                !highest->is_number_unsigned()) {
                throw;
            }
            agents_.epoch().raise(highest->get<std::uint64_t>() + 1);
        }
    }
}

std::map<pool::SandboxId, WorkspaceRecord> Recovery::openWorkspaces() {
    std::map<pool::SandboxId, WorkspaceRecord> open;
    history_.journal.flush(std::chrono::seconds(5));
    history_.journal.read([&](Database& database) {
        Statement row(database,
                      "SELECT id, tenant, pool, sandbox, claim_id FROM workspaces WHERE ended_ms "
                      "IS NULL");
        while (row.step()) {
            WorkspaceRecord record;
            record.id = row.text(0);
            record.tenant = row.text(1);
            record.pool = row.text(2);
            record.sandbox = row.text(3);
            record.claim_id = row.text(4);
            open.emplace(record.sandbox, record);
        }
    });
    return open;
}

bool Recovery::expect(const pool::SandboxInfo& info,
                      const std::map<pool::SandboxId, WorkspaceRecord>& open) {
    if (SandboxLayerBuilder::isBuilder(info.labels)) return false;
    const auto known = open.find(info.id);
    // A sandbox that was never claimed holds nothing: another takes its place. If another replica
    // may have claimed it and not noted it yet, this is unknown.
    const bool unknown = fleet_.runtime.inCluster() && info.listening;
    if (known == open.end() && !fleet_.marks.exists(info.id) && !unknown) return false;
    pool::Member member = memberOf(info);
    WorkspaceTable::Expected expected{info.id, member.pool};
    if (known != open.end()) {
        expected.workspace = known->second.id;
        expected.tenant = known->second.tenant;
        expected.claim_id = known->second.claim_id;
    }
    const PoolPtr pool = specs_.find(member.pool);
    // The agent knows the limits that the claim was narrowed to, once it answers.
    if (pool) expected.use = demandOf(pool->spec.limits, member.gpus.size());
    if (pool && pool->spec.storage == pool::Storage::Disk) {
        member.disk_bytes = pool->spec.limits.workspace_bytes;
    }
    member.unasked = true;
    member.phase = pool::Phase::Claimed;
    member.workspace = expected.workspace;
    member.tenant = expected.tenant;
    fleet_.marks.set(info.id);
    if (!fleet_.warm.adopt(std::move(member))) return false;
    table_.expect(expected);
    return true;
}

pool::Member Recovery::memberOf(const pool::SandboxInfo& info) const {
    const auto label = [&](const char* key) {
        const auto found = info.labels.find(key);
        return found == info.labels.end() ? std::string() : found->second;
    };
    pool::Member member;
    member.id = info.id;
    member.pool = label("pool");
    member.template_hash = label("template");
    member.generation = parseNumber<std::int64_t>(label("generation")).value_or(0);
    member.created = fromUnixMillis(info.created_unix_ms);
    member.created_at = history_.clock.now() - (history_.clock.wall() - member.created);
    member.gpus = gpusOf(info.labels);
    if (const PoolPtr pool = specs_.find(member.pool)) member.image = pool->spec.image;
    return member;
}

Recovery::Verdict Recovery::place(const pool::SandboxInfo& info,
                                  const std::shared_ptr<agent::AgentClient>& agent) {
    if (SandboxLayerBuilder::isBuilder(info.labels)) return Verdict::Swept;
    pool::Member member = memberOf(info);
    const PoolPtr pool = specs_.find(member.pool);
    const bool on_disk = !pool || pool->spec.storage == pool::Storage::Disk;

    if (agent->hello().binding) {
        try {
            adoptWorkspace(std::move(member), agent, on_disk);
            // The server may have ended between its claim and the change of its weight.
            if (!fleet_.runtime.goFirst(info.id, false)) {
                history_.log.warn("recovery.weight_kept", {{"sandbox", info.id}});
            }
            table_.forgetExpected(info.id);
            agents_.notice(info.id, *agent);
            return Verdict::Claimed;
        } catch (const Error& e) {
            // A disk that fails or is full proves nothing about the sandbox.
            if (e.code() == ErrorCode::Unavailable || e.code() == ErrorCode::DiskFull) throw;
            history_.log.warn("recovery.bad_note", {{"sandbox", info.id}, {"error", e.what()}});
            return Verdict::Swept;
        }
    }
    // Its layer is compared with the pool's once the pool's is known.
    const auto layer = info.labels.find(kLayerLabel);
    const std::string wanted =
        pool ? templateHash(pool->spec, layer == info.labels.end() ? "" : layer->second) : "";
    if (fleet_.marks.exists(info.id) || !pool || wanted != member.template_hash) {
        return Verdict::Swept;
    }
    if (!warmedUp(agent->hello(), pool->spec)) return Verdict::Swept;
    static_cast<void>(fleet_.runtime.goFirst(info.id, true));  // without it, the sandbox is slower
    member.limits = pool->spec.limits;
    member.disk_bytes = on_disk ? member.limits.workspace_bytes : 0;
    member.phase = pool::Phase::Ready;
    member.ready = history_.clock.wall();
    member.agent = agent;
    try {
        if (const auto used = fleet_.runtime.usage(info.id)) member.start.cpu_ns = used->cpu_ns;
    } catch (const std::exception& e) {  // then its start counts as its workspace's usage
        history_.log.debug("usage.unknown", {{"sandbox", info.id}, {"error", e.what()}});
    }
    if (!fleet_.warm.adopt(std::move(member))) return Verdict::Swept;
    table_.forgetExpected(info.id);
    agents_.notice(info.id, *agent);
    return Verdict::Warm;
}

void Recovery::adoptWorkspace(pool::Member member, const std::shared_ptr<agent::AgentClient>& agent,
                              bool on_disk) {
    const agent::Hello& hello = agent->hello();
    WorkspaceFacts facts = factsFrom(*hello.binding, member.id, gateway_.claimSeal());
    // A bind in the future would move the end of the lifetime with it.
    facts.created_at = std::min(facts.created_at, history_.clock.now());
    // History is read before anything is changed: if that fails, the sandbox is tried again later.
    const std::optional<WorkspaceRecord> record = history_.journal.workspace(facts.id);
    const std::map<std::string, std::string> labels =
        history_.journal.labels(facts.id).value_or(hello.binding->labels);
    // The runtime's note about it may be damaged: history knows the pool, too.
    if (member.pool.empty() && record && record->sandbox == member.id) member.pool = record->pool;
    // The runtime decides the pool: an agent could choose a pool with more network.
    if (facts.pool != member.pool) {
        throw Error(ErrorCode::InvalidArgument, "the agent's note names another pool");
    }
    const PoolPtr pool = specs_.find(facts.pool);
    const egress::ClaimReach reach = gateway_.claimSeal().open(facts.sealed, facts.claim_id);
    checkOwner(facts, reach);
    // Its end was answered and recorded; the server was gone before its sandbox was. If what ran
    // there is not recorded, the workspace comes back and its mark ends it once more.
    if (record && record->ended_ms &&
        !(fleet_.marks.ended(member.id) && hasUnrecorded(hello, history_.journal))) {
        throw Error(ErrorCode::Gone, "its workspace has ended");
    }
    facts.network = reach.mode;
    facts.allow = reach.allow;
    narrowToPool(facts, pool);
    if (facts.network == egress::NetworkMode::Egress) {
        facts.keyring = gateway_.keyrings().again(pool->spec.network_credentials, reach.keys);
    }
    member.pool = facts.pool;
    member.limits = facts.limits;
    facts.gpus = member.gpus;
    member.disk_bytes = on_disk ? member.limits.workspace_bytes : 0;
    member.phase = pool::Phase::Claimed;
    member.workspace = facts.id;
    member.tenant = facts.tenant;
    member.agent = agent;
    member.ready = facts.created;
    fleet_.marks.set(member.id);
    if (!fleet_.warm.adopt(std::move(member)))
        throw Error(ErrorCode::Gone, "its end was asked for");
    auto workspace =
        std::make_shared<Workspace>(facts, agent, labels, hello.deadlines, hello.last_activity);
    table_.insert(workspace);
    if (!facts.gpus.empty()) {
        gpus_.keep(facts.sandbox, table_.quotas().occupied(facts.tenant, facts.gpus.size()));
    }
    // Its earlier traffic is in the log; its connections ended with the earlier server.
    try {
        gateway_.open(facts.sandbox, {facts.id, facts.tenant, facts.pool, facts.trace},
                      networkPolicy(facts), facts.keyring, *agent);
    } catch (const agent::AgentLost& e) {  // its next connection restores this
        history_.log.warn("recovery.no_way_out", {{"sandbox", facts.sandbox}, {"error", e.what()}});
    }
    if (!record) {  // the data file was lost, or the crash came before it
        history_.journal.record(WorkspaceRecord{facts.id, facts.tenant, facts.pool, facts.sandbox,
                                                facts.claim_id, facts.fingerprint, facts.name,
                                                toUnixMillis(facts.created), std::nullopt, ""});
    }
    adoptWork(workspace, hello);
}

void Recovery::adoptWork(const std::shared_ptr<Workspace>& workspace, const agent::Hello& hello) {
    const WorkspaceFacts& facts = workspace->facts();
    try {
        adoptContexts(workspace, hello);
        for (const agent::KnownExecution& known : hello.executions) {
            executions_.adopt(workspace, known);
        }
        if (facts.one_shot) executions_.adoptOneShot(*workspace);
    } catch (const std::exception& e) {
        // The workspace stays; the next start finds its executions again.
        history_.log.error("recovery.work_unknown", {{"workspace", facts.id}, {"error", e.what()}});
    }
}

void Recovery::rejoin(const std::shared_ptr<Workspace>& workspace,
                      std::chrono::milliseconds patience, unsigned before) {
    const WorkspaceFacts& facts = workspace->facts();
    const std::shared_ptr<agent::AgentClient> old = workspace->agent();
    if (!old->lost()) {
        try {
            old->touch(patience);
            workspace->answers(history_.clock.now());
            return;
        } catch (const agent::AgentLost& e) {
            if (e.loss() == agent::Loss::Broken) throw;
            // The thread that reads the connection may not have noticed its loss.
            if (!old->lost() && before < kTouches) throw;
        }
    }
    const std::shared_ptr<agent::AgentClient> agent = agents_.connect(facts.sandbox, patience);
    const std::optional<agent::Binding>& binding = agent->hello().binding;
    if (!binding || binding->claim_id != facts.claim_id || binding->workspace_id != facts.id ||
        binding->tenant != facts.tenant || binding->fingerprint != facts.fingerprint) {
        throw agent::AgentLost("the agent reports another claim", agent::Loss::Broken);
    }
    old->close();  // its subscribers have been informed of its end when this returns
    // The answer to a change of the deadlines may have come too late to be read.
    workspace->deadlines(agent->hello().deadlines.expires_at,
                         agent->hello().deadlines.idle_timeout);
    if (!fleet_.warm.reconnected(facts.sandbox, agent)) return;  // its end was requested
    try {
        gateway_.resume(facts.sandbox, {facts.id, facts.tenant, facts.pool}, networkPolicy(facts),
                        facts.keyring, *agent);
    } catch (const agent::AgentLost& e) {
        history_.log.warn("recovery.no_way_out", {{"sandbox", facts.sandbox}, {"error", e.what()}});
    }
    workspace->answers(history_.clock.now(), agent);
    agents_.notice(facts.sandbox, *agent);
}

void Recovery::checkOwner(const WorkspaceFacts& facts, const egress::ClaimReach& reach) const {
    const std::optional<WorkspaceRecord> record = history_.journal.workspace(facts.id);
    const bool known = record && record->tenant == facts.tenant &&
                       record->sandbox == facts.sandbox && record->claim_id == facts.claim_id;
    const bool sealed = reach.tenant == facts.tenant && reach.workspace == facts.id;
    // A seal is believed without a record, too: the data file may be lost.
    if (!sealed || (record && !known)) {
        throw Error(ErrorCode::InvalidArgument, "the agent reports a claim that is not its own");
    }
    if (table_.find(facts.id) || table_.byClaim(facts.claim_id)) {
        throw Error(ErrorCode::Conflict, "another sandbox has the workspace");
    }
}

/// Uses the agent's list of live contexts, with the journal's facts about them.
void Recovery::adoptContexts(const std::shared_ptr<Workspace>& workspace,
                             const agent::Hello& hello) {
    const WorkspaceFacts& facts = workspace->facts();
    for (const agent::KnownContext& known : hello.contexts) {
        if (!isId(known.id, "cx_")) continue;  // not made by this server
        ContextFacts context{known.id, known.language, "", "", "", history_.clock.wall()};
        if (const std::optional<ContextRecord> past = history_.journal.context(known.id)) {
            context.name = past->name;
            context.cwd = past->cwd;
            context.fingerprint = past->fingerprint;
            context.created = fromUnixMillis(past->created_ms);
        } else {
            history_.journal.record(ContextRecord{known.id, facts.id, facts.tenant, known.language,
                                                  "", "", "", toUnixMillis(context.created),
                                                  std::nullopt, ""});
        }
        if (workspace->contexts().add(std::move(context))) history_.metrics.contextMade(facts.pool);
    }
    for (const ContextRecord& open : history_.journal.openContexts(facts.id)) {
        if (workspace->contexts().find(open.id)) continue;
        history_.journal.contextEnded(open.id, toUnixMillis(history_.clock.wall()), "died");
    }
}

void Recovery::closeHistory() {
    std::vector<std::pair<std::string, pool::SandboxId>> open;
    history_.journal.flush(std::chrono::seconds(5));
    history_.journal.read([&](Database& database) {
        Statement row(database, "SELECT id, sandbox FROM workspaces WHERE ended_ms IS NULL");
        while (row.step()) open.emplace_back(row.text(0), row.text(1));
    });
    for (const auto& [id, sandbox] : open) {
        if (table_.find(id) || table_.expectedWorkspace(id)) continue;
        const EndReason reason = markedEnd(fleet_.marks, sandbox).value_or(EndReason::Lost);
        history_.journal.ended(id, toUnixMillis(history_.clock.wall()), kEndReasons.of(reason));
    }
}

}  // namespace hearth::controller
