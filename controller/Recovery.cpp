#include "controller/Recovery.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/LayerBuilder.h"
#include "controller/TemplateHash.h"

namespace hearth::controller {
namespace {

/// Never more than its pool offers now, whatever its claim was given.
void narrowToPool(WorkspaceFacts& facts, const PoolPtr& pool) {
    facts.network = std::min(facts.network, pool ? pool->spec.network : broker::NetworkMode::None);
    if (facts.network == broker::NetworkMode::Egress) {
        facts.allow.push_back(pool->spec.network_allow);
    }
}

constexpr unsigned kAskers = 8;
/// A sandbox that uses all of its CPU answers late; one that hangs must not hold up the others
/// long.
constexpr auto kAnswerWithin = std::chrono::seconds(5);
constexpr const char* kEpochKey = "epoch";

/// Whether the pool's command has been run to its end: of one that stopped half-way nobody knows
/// what it has left. Interpreters come along by themselves.
bool warmedUp(const agent::Hello& hello, const PoolSpec& spec) {
    if (spec.prewarm_command.empty()) return true;
    return std::any_of(hello.executions.begin(), hello.executions.end(), [](const auto& known) {
        return known.id == kPrewarmExecution && !known.running;
    });
}

}  // namespace

Recovery::Recovery(pool::ContainerRuntime& runtime, pool::WarmPool& warm, pool::ClaimMarks& marks,
                   SandboxReconciler& sandboxes, SpecStore& specs, WorkspaceTable& table,
                   ExecutionService& executions, Journal& journal, metrics::Log& log,
                   broker::Broker& broker, const Clock& clock)
    : runtime_(runtime),
      warm_(warm),
      marks_(marks),
      sandboxes_(sandboxes),
      specs_(specs),
      table_(table),
      executions_(executions),
      journal_(journal),
      log_(log),
      broker_(broker),
      clock_(clock) {}

Recovery::Outcome Recovery::run() {
    const std::string stored = journal_.meta(kEpochKey);
    sandboxes_.epoch(1 + (stored.empty() ? 0 : std::stoull(stored)));

    const std::vector<pool::SandboxInfo> found = runtime_.list();
    auto agents = askAll(found);
    // Above every epoch that any agent has seen, so that a lost data file never fences us out.
    std::uint64_t highest = sandboxes_.epoch();
    for (const auto& [id, agent] : agents)
        highest = std::max(highest, agent->hello().highest_epoch);
    // Our own hello hides whether an agent had met this very number in an earlier life.
    if (!agents.empty()) ++highest;
    sandboxes_.epoch(highest);
    journal_.setMeta(kEpochKey, std::to_string(highest));

    Outcome outcome;
    std::vector<pool::SandboxId> keep;
    for (const pool::SandboxInfo& info : found) {
        const auto agent = agents.find(info.id);
        const Verdict verdict = agent == agents.end() ? Verdict::Swept : place(info, agent->second);
        if (verdict == Verdict::Swept) {
            ++outcome.swept;
            continue;
        }
        keep.push_back(info.id);
        ++(verdict == Verdict::Claimed ? outcome.workspaces : outcome.warm);
    }
    agents.clear();
    runtime_.sweep(keep);
    for (const pool::SandboxId& id : marks_.all()) {
        if (!warm_.find(id)) marks_.clear(id);
    }
    closeHistory();
    log_.info("recovery.done", {{"epoch", sandboxes_.epoch()},
                                {"workspaces", outcome.workspaces},
                                {"warm", outcome.warm},
                                {"swept", outcome.swept}});
    return outcome;
}

std::map<pool::SandboxId, std::shared_ptr<agent::AgentClient>> Recovery::askAll(
    const std::vector<pool::SandboxInfo>& found) {
    std::map<pool::SandboxId, std::shared_ptr<agent::AgentClient>> answers;
    std::mutex mutex;
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> askers;
    for (unsigned i = 0; i < kAskers; ++i) {
        askers.emplace_back([&] {
            for (std::size_t at = next++; at < found.size(); at = next++) {
                if (!found[at].alive) continue;
                std::shared_ptr<agent::AgentClient> agent = ask(found[at].id);
                if (!agent) continue;
                const std::lock_guard lock(mutex);
                answers.emplace(found[at].id, std::move(agent));
            }
        });
    }
    askers.clear();
    return answers;
}

std::shared_ptr<agent::AgentClient> Recovery::ask(const pool::SandboxId& id) {
    // Twice: a stored epoch that is too low is learnt from the first refusal.
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            return sandboxes_.connect(id, kAnswerWithin);
        } catch (const agent::AgentError& e) {
            const auto highest = e.details().find("highestEpoch");
            if (e.code() == "STALE_EPOCH" && highest != e.details().end() &&
                highest->is_number_unsigned()) {
                sandboxes_.raiseEpoch(highest->get<std::uint64_t>() + 1);
                continue;
            }
            log_.warn("recovery.refused", {{"sandbox", id}, {"code", e.code()}});
            return nullptr;
        } catch (const std::exception& e) {
            log_.warn("recovery.no_answer", {{"sandbox", id}, {"error", e.what()}});
            return nullptr;
        }
    }
    return nullptr;
}

Recovery::Verdict Recovery::place(const pool::SandboxInfo& info,
                                  const std::shared_ptr<agent::AgentClient>& agent) {
    if (SandboxLayerBuilder::isBuilder(info.labels)) return Verdict::Swept;
    const auto label = [&](const char* key) {
        const auto found = info.labels.find(key);
        return found == info.labels.end() ? std::string() : found->second;
    };
    pool::Member member;
    member.id = info.id;
    member.pool = label("pool");
    member.template_hash = label("template");
    const std::string generation = label("generation");
    member.generation = generation.empty() ? 0 : std::stoll(generation);
    member.created = fromUnixMillis(info.created_unix_ms);
    member.created_at = clock_.now() - (clock_.wall() - member.created);
    const PoolPtr pool = specs_.find(member.pool);
    if (pool) member.image = pool->spec.image;

    if (agent->hello().binding) {
        try {
            adoptWorkspace(std::move(member), agent);
            // The server may have ended between its claim and that.
            if (!runtime_.goFirst(info.id, false)) {
                log_.warn("recovery.weight_kept", {{"sandbox", info.id}});
            }
            sandboxes_.notice(info.id, *agent);
            return Verdict::Claimed;
        } catch (const Error& e) {
            log_.warn("recovery.bad_note", {{"sandbox", info.id}, {"error", e.what()}});
            return Verdict::Swept;
        }
    }
    // Whether its layer is still the one that the pool wants is seen when that is known.
    const std::string wanted = pool ? templateHash(pool->spec, label(kLayerLabel)) : "";
    if (marks_.exists(info.id) || !pool || wanted != member.template_hash) {
        return Verdict::Swept;
    }
    if (!warmedUp(agent->hello(), pool->spec)) return Verdict::Swept;
    static_cast<void>(runtime_.goFirst(info.id, true));  // without it, it is only slower
    member.limits = pool->spec.limits;
    member.phase = pool::Phase::Ready;
    member.ready = clock_.wall();
    member.agent = agent;
    warm_.adopt(std::move(member));
    sandboxes_.notice(info.id, *agent);
    return Verdict::Warm;
}

void Recovery::adoptWorkspace(pool::Member member,
                              const std::shared_ptr<agent::AgentClient>& agent) {
    const agent::Hello& hello = agent->hello();
    WorkspaceFacts facts = factsFrom(*hello.binding, member.id);
    // Whose it is, the runtime knows; the agent's word would choose what it may reach.
    if (facts.pool != member.pool) {
        throw Error(ErrorCode::InvalidArgument, "the agent's note is of another pool");
    }
    const PoolPtr pool = specs_.find(facts.pool);
    const broker::ClaimReach reach = broker_.claimSeal().open(facts.sealed, facts.claim_id);
    checkOwner(facts, reach);
    facts.network = reach.mode;
    facts.allow = reach.allow;
    narrowToPool(facts, pool);
    if (facts.network == broker::NetworkMode::Egress) {
        facts.keyring = broker_.keyrings().again(pool->spec.network_credentials, reach.keys);
    }
    member.pool = facts.pool;
    member.limits = facts.limits;
    member.phase = pool::Phase::Claimed;
    member.workspace = facts.id;
    member.tenant = facts.tenant;
    member.agent = agent;
    member.ready = facts.created;
    marks_.set(member.id);
    warm_.adopt(std::move(member));
    auto workspace = std::make_shared<Workspace>(
        facts, agent, journal_.labels(facts.id).value_or(hello.binding->labels), hello.deadlines,
        hello.last_activity);
    table_.insert(workspace);
    // What it sent out before is in the log; the connections went with the server that had them.
    broker_.open(facts.sandbox, {facts.id, facts.tenant, facts.pool}, networkPolicy(facts),
                 facts.keyring, *agent);
    if (!journal_.workspace(facts.id)) {  // the data file was lost, or the crash came before it
        journal_.record(WorkspaceRecord{facts.id, facts.tenant, facts.pool, facts.sandbox,
                                        facts.claim_id, facts.fingerprint, facts.name,
                                        toUnixMillis(facts.created), std::nullopt, ""});
    }
    adoptContexts(workspace, hello);
    for (const agent::KnownExecution& known : hello.executions) {
        executions_.adopt(workspace, known);
    }
}

void Recovery::checkOwner(const WorkspaceFacts& facts, const broker::ClaimReach& reach) const {
    const std::optional<WorkspaceRecord> record = journal_.workspace(facts.id);
    const bool known = record && record->tenant == facts.tenant &&
                       record->sandbox == facts.sandbox && record->claim_id == facts.claim_id;
    const bool sealed = reach.tenant == facts.tenant && reach.workspace == facts.id;
    // A claim of before owners were sealed is believed where the journal says the same; one of
    // now also where the data file was lost, or the crash came before the record.
    const bool old = reach.tenant.empty() && reach.workspace.empty();
    if (old ? !known : !sealed || (record && !known)) {
        throw Error(ErrorCode::InvalidArgument, "the agent tells of a claim that is not its own");
    }
    // Its end was answered and written down; the server was gone before its sandbox was.
    if (record && record->ended_ms) throw Error(ErrorCode::Gone, "its workspace has ended");
    if (table_.find(facts.id) || table_.byClaim(facts.claim_id)) {
        throw Error(ErrorCode::Conflict, "another sandbox has the workspace");
    }
}

/// The agent knows which live; the journal knows what they were made as.
void Recovery::adoptContexts(const std::shared_ptr<Workspace>& workspace,
                             const agent::Hello& hello) {
    const WorkspaceFacts& facts = workspace->facts();
    for (const agent::KnownContext& known : hello.contexts) {
        if (!isId(known.id, "cx_")) continue;  // none of ours
        ContextFacts context{known.id, known.language, "", "", "", clock_.wall()};
        if (const std::optional<ContextRecord> past = journal_.context(known.id)) {
            context.name = past->name;
            context.cwd = past->cwd;
            context.fingerprint = past->fingerprint;
            context.created = fromUnixMillis(past->created_ms);
        } else {
            journal_.record(ContextRecord{known.id, facts.id, facts.tenant, known.language, "", "",
                                          "", toUnixMillis(context.created), std::nullopt, ""});
        }
        if (workspace->contexts().add(std::move(context))) executions_.contextFound(facts.pool);
    }
    for (const ContextRecord& open : journal_.openContexts(facts.id)) {
        if (workspace->contexts().find(open.id)) continue;
        journal_.contextEnded(open.id, toUnixMillis(clock_.wall()), "died");
    }
}

void Recovery::closeHistory() {
    std::vector<std::string> open;
    journal_.flush(std::chrono::seconds(5));
    journal_.read([&](Database& database) {
        Statement row(database, "SELECT id FROM workspaces WHERE ended_ms IS NULL");
        while (row.step()) open.push_back(row.text(0));
    });
    for (const std::string& id : open) {
        if (!table_.find(id)) journal_.ended(id, toUnixMillis(clock_.wall()), "lost");
    }
}

}  // namespace hearth::controller
