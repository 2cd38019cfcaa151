#include "controller/ExecutionService.h"

#include <algorithm>

#include "base/CrashPoint.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "controller/AgentErrors.h"
#include "controller/ContextService.h"
#include "controller/Languages.h"
#include "controller/Packages.h"
#include "controller/RunPackages.h"
#include "controller/StoredExecution.h"
#include "controller/Warmup.h"

namespace hearth::controller {
namespace {

/// An agent does not say how much output it was asked to keep.
constexpr std::uint64_t kAdoptedOutputLimit = 16U << 20U;
/// An agent that has not ended an execution so long after its deadline is broken or starved.
constexpr auto kAgentGrace = std::chrono::seconds(20);
constexpr auto kOverdueEvery = std::chrono::seconds(5);
/// What follows an execution's end shares the processor with its answer if it comes at once.
constexpr auto kBehindAnswer = std::chrono::milliseconds(2);
/// The agent keeps what is small a while longer.
constexpr auto kForgetSmall = std::chrono::milliseconds(250);
constexpr std::size_t kSmallOutput = 16U << 10U;
constexpr auto kStdinTimeout = std::chrono::seconds(30);

/// The context that the request names, with what it may not say about it.
ContextFacts contextOf(const Workspace& workspace, const ExecutionRequest& request,
                       Journal& journal) {
    std::optional<ContextFacts> facts = workspace.contexts().find(request.context);
    if (!facts) explainMissingContext(journal, workspace.facts().tenant, request.context);
    if (!request.language.empty() && request.language != facts->language) {
        throw Error(ErrorCode::InvalidArgument, "the context's language is " + facts->language)
            .field("/language", "must be the context's or absent");
    }
    return *facts;
}

Error busyContext() {
    return contextError(agent::AgentError("BUSY", "", Json::object()), "");
}

}  // namespace

ExecutionService::ExecutionService(WorkspaceService& workspaces, WorkspaceTable& table,
                                   Endings& endings, Journal& journal,
                                   pool::ContainerRuntime& runtime, WorkQueue& work,
                                   EventLog& events, metrics::Metrics& metrics, metrics::Log& log,
                                   const std::string& secret_key, std::vector<std::string> mirrored,
                                   const Clock& clock)
    : workspaces_(workspaces),
      table_(table),
      endings_(endings),
      journal_(journal),
      runtime_(runtime),
      work_(work),
      events_(events),
      metrics_(metrics),
      log_(log),
      secret_key_(secret_key),
      mirrored_(std::move(mirrored)),
      clock_(clock) {
    gate_->service = this;
}

ExecutionService::~ExecutionService() {
    const std::lock_guard lock(gate_->mutex);  // after the calls that are under way
    gate_->service = nullptr;
}

std::shared_ptr<Execution> ExecutionService::start(const Principal& who,
                                                   const std::string& workspace,
                                                   const ExecutionRequest& request) {
    std::string id = newId("ex_");
    if (!request.idempotency_key.empty()) {
        id = derivedId("ex_", secret_key_,
                       {"execution", who.tenant, workspace, request.idempotency_key});
        if (std::shared_ptr<Execution> known = replay(who, id, request.fingerprint)) return known;
    }
    return launch(workspaces_.require(who, workspace), request, id, std::nullopt);
}

std::shared_ptr<Execution> ExecutionService::startOneShot(const Principal& who,
                                                          const WorkspaceRequest& where,
                                                          const ExecutionRequest& request) {
    checkPackages(request, request.language);  // before it costs a sandbox
    WorkspaceRequest claim = where;
    claim.idempotency_key = request.idempotency_key;
    claim.fingerprint = request.fingerprint;
    claim.started_at = request.started_at;
    std::string id = newId("ex_");
    if (!request.idempotency_key.empty()) {
        id = derivedId("ex_", secret_key_, {"one shot", who.tenant, request.idempotency_key});
        if (std::shared_ptr<Execution> known = replay(who, id, request.fingerprint)) return known;
    }
    bool replayed = false;
    const Claims::Claimed claimed = workspaces_.open(who, claim, true, replayed);
    if (replayed) {
        // The first request may have finished since we looked: then its result is the answer.
        if (std::shared_ptr<Execution> known = replay(who, id, request.fingerprint)) return known;
    }
    if (!claimed.workspace) {
        throw Error(ErrorCode::SandboxLost, "the one shot's sandbox ended before its result")
            .hint("repeat it with a new Idempotency-Key");
    }
    try {
        return launch(claimed.workspace, request, id,
                      replayed ? std::nullopt : std::optional(claimed.ledger));
    } catch (...) {
        endings_.end(claimed.workspace, "failed");
        throw;
    }
}

std::shared_ptr<Execution> ExecutionService::replay(const Principal& who, const std::string& id,
                                                    const std::string& fingerprint) {
    const auto check = [&](const std::string& first) {
        if (first == fingerprint) return;
        throw Error(ErrorCode::IdempotencyMismatch,
                    "the Idempotency-Key was used with another request")
            .hint("use a new key for a new request");
    };
    {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        if (found != live_.end()) {
            check(found->second->facts().fingerprint);
            return found->second;
        }
    }
    const std::optional<ExecutionRecord> past = journal_.execution(id);
    if (!past || past->tenant != who.tenant) return nullptr;
    check(past->fingerprint);
    return stored(*past);
}

std::shared_ptr<Execution> ExecutionService::stored(const ExecutionRecord& record) const {
    return storedExecution(record, journal_,
                           artifacts_ == nullptr ? nullptr : &artifacts_->store());
}

std::shared_ptr<LiveExecution> ExecutionService::remember(
    LiveExecution::Facts facts, const std::shared_ptr<Workspace>& workspace) {
    auto execution = std::make_shared<LiveExecution>(std::move(facts), workspace, clock_);
    execution->self(execution);
    execution->onEnded([gate = gate_](const std::shared_ptr<LiveExecution>& which) {
        const std::shared_lock lock(gate->mutex);
        if (gate->service != nullptr) gate->service->ended(which);
    });
    const std::lock_guard lock(mutex_);
    const auto [entry, fresh] = live_.emplace(execution->id(), execution);
    return fresh ? execution : nullptr;
}

std::shared_ptr<LiveExecution> ExecutionService::launch(const std::shared_ptr<Workspace>& workspace,
                                                        const ExecutionRequest& request,
                                                        const std::string& id,
                                                        std::optional<ClaimLedger> ledger) {
    agent::ExecRequest work;
    work.id = id;
    work.fingerprint = request.fingerprint;
    if (!request.context.empty()) {
        work.language = contextOf(*workspace, request, journal_).language;
        work.context = request.context;
    } else if (request.code) {
        work.language = chooseLanguage(request.language, workspace->agent().hello().languages);
    }
    if (wantsPackages(request)) {
        work.prepare =
            packagesFirst(request, work.language, shutWays(workspace->facts().network, mirrored_));
    }
    if (request.code) work.code = *request.code;
    if (request.command) work.command = *request.command;
    work.argv = request.argv;
    work.cwd = request.cwd;
    work.env = request.env;
    work.stdin_open = request.stdin_open || request.stdin_bytes.has_value();
    work.pty = request.pty;
    work.timeout = request.timeout;
    work.output_limit = request.output_limit;
    work.background = request.background;

    LiveExecution::Facts facts;
    facts.id = id;
    facts.fingerprint = request.fingerprint;
    facts.language = work.language;
    facts.context = request.context;
    facts.background = request.background;
    facts.stdin_open = request.stdin_open || request.pty.has_value();
    facts.output_limit = request.output_limit;
    facts.claim = std::move(ledger);
    facts.requested = request.started_at == TimePoint{} ? clock_.now() : request.started_at;
    if (request.timeout.count() > 0)
        facts.overdue_at = clock_.now() + request.timeout + kAgentGrace;

    const TimePoint written_until = workspace->lastWrite(clock_.now());
    if (!workspace->workBegan(clock_.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended").hint("open a new one");
    }
    if (artifacts_ != nullptr && !request.collect.empty()) facts.collect = request.collect;
    std::shared_ptr<LiveExecution> execution = remember(std::move(facts), workspace);
    if (!execution) {  // the same key at the same time: the other one runs it
        workspace->workEnded(clock_.now());
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        if (found != live_.end()) return found->second;
        throw Error(ErrorCode::IdempotencyInFlight, "the first request is still being answered")
            .retryAfter(std::chrono::seconds(1));
    }
    bool sent = false;
    try {
        if (!execution->facts().collect.empty()) {
            collectAtEnd(*execution, Artifacts::settle(written_until, clock_));
            work.note = execution->note();
        }
        if (!request.context.empty() && !workspace->contexts().begin(request.context, id)) {
            throw busyContext();
        }
        crashPoint("exec.before_send");
        const std::shared_ptr<agent::ExecHandle> handle = workspace->agent().exec(work, execution);
        sent = true;
        crashPoint("exec.after_send");
        execution->handle(handle);
        if (request.stdin_bytes && handle) {
            // More than the agent's window would block this thread while the program does not read.
            handle->writeStdin(*request.stdin_bytes, kStdinTimeout);
            handle->closeStdin();
        }
    } catch (const agent::AgentLost& e) {
        endings_.lost(workspace->facts().sandbox, e.what());
        execution->endLost();
    } catch (const Error&) {
        if (!sent) {  // the agent has not heard of it: it does not run, and nothing of it stays
            {
                const std::lock_guard lock(mutex_);
                live_.erase(id);
            }
            if (!request.context.empty()) workspace->contexts().end(request.context, id);
            execution->endLost();
        }
        throw;
    }
    return execution;
}

void ExecutionService::collectAtEnd(LiveExecution& execution, TimePoint since) {
    execution.onCollect(
        [artifacts = artifacts_, since](const std::shared_ptr<LiveExecution>& which) {
            artifacts->collect(which, since);
        });
}

void ExecutionService::ended(const std::shared_ptr<LiveExecution>& execution) {
    const std::shared_ptr<Workspace>& workspace = execution->workspace();
    const WorkspaceFacts& facts = workspace->facts();
    if (execution->mayHaveMetOom(facts.limits.memory_bytes) && sawOom(*workspace)) {
        execution->oomSeen();
    }
    workspace->workEnded(clock_.now());
    if (const std::string context = execution->context(); !context.empty()) {
        workspace->contexts().end(context, execution->id());
        if (execution->tookContext() && workspace->contexts().eraseWith(context, execution->id())) {
            journal_.contextEnded(context, toUnixMillis(clock_.wall()), "died");
            metrics_.contextEnded(facts.pool, "died");
            events_.publish({.type = "context.ended",
                             .resource = context,
                             .pool = facts.pool,
                             .tenant = facts.tenant,
                             .reason = "died",
                             .message = "a context ended with its execution"});
        }
    }
    // Not on this thread, which reads the agent's connection: settle() does what is slow, once the
    // answer is on its way.
    work_.addAfter({"execution", execution->id()}, kBehindAnswer);
}

bool ExecutionService::sawOom(Workspace& workspace) {
    const pool::SandboxId& sandbox = workspace.facts().sandbox;
    try {
        const std::optional<pool::SandboxUsage> usage = runtime_.usage(sandbox);
        return usage && workspace.sawOom(usage->oom_kills);
    } catch (const std::exception& e) {
        // The execution ends all the same: nobody would tell it again.
        log_.warn("execution.usage_unknown", {{"sandbox", sandbox}, {"error", e.what()}});
        return false;
    }
}

ReconcileResult ExecutionService::settle(const std::string& id) {
    std::shared_ptr<LiveExecution> execution;
    {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        if (found == live_.end()) return ReconcileResult::settled();
        execution = found->second;
    }
    if (!execution->finished()) return ReconcileResult::after(std::chrono::milliseconds(1));
    const std::shared_ptr<Workspace> workspace = execution->workspace();
    const WorkspaceFacts& facts = workspace->facts();
    const ExecutionView view = execution->viewUpTo(0);
    metrics_.execution(facts.pool, view.language.empty() ? "command" : view.language, view.status,
                       execution->runSeconds(), execution->overheadSeconds());
    events_.publish({.type = "execution.finished",
                     .resource = id,
                     .pool = facts.pool,
                     .tenant = facts.tenant,
                     .reason = view.status,
                     .message = "an execution has ended"});
    const bool apart = keepsApart(view);
    ExecutionRecord record{id,
                           facts.id,
                           facts.tenant,
                           execution->facts().fingerprint,
                           executionDocument(view),
                           apart ? kOutputApart : packedOutput(*execution),
                           toUnixMillis(clock_.wall())};
    std::function<void(const Journal::PutPiece&)> output;
    if (apart) {
        output = [execution](const Journal::PutPiece& put) { putApart(*execution, put); };
    }
    crashPoint("exec.before_durable");
    journal_.record(
        record,
        [gate = gate_, record, execution, &journal = journal_,
         kept = view.kept_bytes + view.result_bytes](bool durable) {
            // Whoever still reads it reads the journal: its memory is not theirs to hold.
            if (durable && record.output == kOutputApart) {
                execution->keptBy(storedExecution(record, journal));
            }
            const std::shared_lock lock(gate->mutex);
            if (gate->service == nullptr) return;
            gate->service->recorded(execution->id(), execution->workspace(), durable, kept);
        },
        std::move(output));
    return ReconcileResult::settled();
}

void ExecutionService::recorded(const std::string& id, const std::shared_ptr<Workspace>& workspace,
                                bool durable, std::size_t kept_bytes) {
    crashPoint("exec.after_durable");
    if (durable) {
        const std::lock_guard lock(mutex_);
        live_.erase(id);
    }
    if (workspace->facts().one_shot) {
        // A second execution in it is none of the one shot's, but may still be at work.
        if (workspace->running() > 0) return;
        endings_.end(workspace, "deleted");
    } else if (durable && workspace->active()) {
        // It costs the agent a request of its own, which would meet the tenant's next.
        const bool small = kept_bytes <= kSmallOutput;
        work_.addAfter({"forget", workspace->facts().id + "/" + id},
                       small ? kForgetSmall : std::chrono::milliseconds(0));
    }
}

ReconcileResult ExecutionService::endOverdue() {
    const TimePoint now = clock_.now();
    std::vector<std::shared_ptr<LiveExecution>> overdue;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, execution] : live_) {
            const TimePoint at = execution->facts().overdue_at;
            if (at != TimePoint{} && at < now && !execution->finished())
                overdue.push_back(execution);
        }
    }
    for (const std::shared_ptr<LiveExecution>& execution : overdue) {
        endings_.lost(execution->workspace()->facts().sandbox,
                      "the agent did not end an execution at its deadline");
        execution->endLost();
    }
    return ReconcileResult::after(kOverdueEvery);
}

ReconcileResult ExecutionService::forget(const std::string& name) {
    const std::size_t slash = name.find('/');
    const std::shared_ptr<Workspace> workspace = table_.find(name.substr(0, slash));
    if (!workspace) return ReconcileResult::settled();
    try {
        workspace->agent().forget(name.substr(slash + 1));
    } catch (const agent::AgentError&) {
        // It has forgotten already.
    } catch (const agent::AgentLost& e) {
        endings_.lost(workspace->facts().sandbox, e.what());
    }
    return ReconcileResult::settled();
}

void ExecutionService::adopt(const std::shared_ptr<Workspace>& workspace,
                             const agent::KnownExecution& known) {
    if (known.id == kPrewarmExecution) return;  // of the sandbox's own, before any tenant's
    if (!known.running && journal_.execution(known.id)) {
        work_.add({"forget", workspace->facts().id + "/" + known.id});
        return;
    }
    LiveExecution::Facts facts;
    facts.id = known.id;
    facts.fingerprint = known.fingerprint;
    facts.background = known.background;
    facts.had_ended = !known.running;
    facts.requested = known.started_at;
    facts.output_limit = kAdoptedOutputLimit;
    workspace->workBegan(clock_.now());
    const std::shared_ptr<LiveExecution> execution = remember(std::move(facts), workspace);
    if (!execution) return workspace->workEnded(clock_.now());
    // Whether it wants any is in its note, which the agent tells before all else.
    if (artifacts_ != nullptr) collectAtEnd(*execution, known.started_at);
    try {
        execution->handle(workspace->agent().attach(known.id, 0, execution, kAdoptedOutputLimit));
    } catch (const agent::AgentLost& e) {  // since it told what it runs
        endings_.lost(workspace->facts().sandbox, e.what());
        execution->endLost();
    }
}

std::shared_ptr<Execution> ExecutionService::find(const Principal& who, const std::string& id) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        if (found != live_.end() && found->second->workspace()->facts().tenant == who.tenant) {
            return found->second;
        }
    }
    const std::optional<ExecutionRecord> past = journal_.execution(id);
    if (!past || past->tenant != who.tenant) {
        throw Error(ErrorCode::NotFound, "no execution " + id);
    }
    return stored(*past);
}

std::vector<std::shared_ptr<Execution>> ExecutionService::list(const Principal& who,
                                                               const std::string& workspace) {
    std::vector<std::shared_ptr<Execution>> found;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, execution] : live_) {
            const WorkspaceFacts& facts = execution->workspace()->facts();
            if (facts.id == workspace && facts.tenant == who.tenant) found.push_back(execution);
        }
    }
    for (const ExecutionRecord& record : journal_.executionsOf(workspace)) {
        if (record.tenant != who.tenant) continue;
        const bool seen = std::any_of(found.begin(), found.end(),
                                      [&](const auto& each) { return each->id() == record.id; });
        if (!seen) found.push_back(stored(record));
    }
    if (found.empty()) workspaces_.require(who, workspace);  // says what became of it
    std::vector<std::pair<std::string, std::shared_ptr<Execution>>> dated;
    dated.reserve(found.size());
    for (std::shared_ptr<Execution>& each : found) {
        std::string started_at = each->viewUpTo(0).started_at;
        dated.emplace_back(std::move(started_at), std::move(each));
    }
    std::stable_sort(dated.begin(), dated.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    found.clear();
    for (auto& [started_at, each] : dated) found.push_back(std::move(each));
    return found;
}

std::shared_ptr<LiveExecution> ExecutionService::running(const Principal& who,
                                                         const std::string& id) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = live_.find(id);
        if (found != live_.end() && found->second->workspace()->facts().tenant == who.tenant &&
            !found->second->finished()) {
            return found->second;
        }
    }
    find(who, id);  // throws NotFound
    throw Error(ErrorCode::Conflict, "execution " + id + " has ended");
}

template <typename Call>
void ExecutionService::ask(const LiveExecution& execution, Call call) {
    try {
        call(execution.workspace()->agent());
    } catch (const agent::AgentError& e) {
        if (e.code() == "NOT_FOUND") {
            throw Error(ErrorCode::Conflict, "execution " + execution.id() + " has ended");
        }
        throw clientError(e);
    } catch (const agent::AgentLost& e) {
        endings_.lost(execution.workspace()->facts().sandbox, e.what());
        throw Error(ErrorCode::SandboxLost, "the workspace's sandbox did not answer")
            .hint("open a new workspace");
    }
}

void ExecutionService::signal(const Principal& who, const std::string& id, std::string_view name) {
    const std::shared_ptr<LiveExecution> execution = running(who, id);
    ask(*execution, [&](agent::AgentClient& agent) { agent.signal(id, name); });
}

void ExecutionService::resize(const Principal& who, const std::string& id, unsigned columns,
                              unsigned rows) {
    const std::shared_ptr<LiveExecution> execution = running(who, id);
    ask(*execution, [&](agent::AgentClient& agent) { agent.resize(id, columns, rows); });
}

void ExecutionService::writeStdin(const Principal& who, const std::string& id,
                                  std::string_view bytes, bool close) {
    const std::shared_ptr<LiveExecution> execution = running(who, id);
    const std::shared_ptr<agent::ExecHandle> handle = execution->handle();
    if (!handle || !execution->facts().stdin_open) {
        throw Error(ErrorCode::Conflict, "execution " + id + " takes no input")
            .hint("start it with stdinOpen or a pty");
    }
    if (!execution->workspace()->touch(clock_.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended");
    }
    ask(*execution, [&](agent::AgentClient&) {
        if (!bytes.empty()) handle->writeStdin(bytes, kStdinTimeout);
        if (close) handle->closeStdin();
    });
}

void ExecutionService::kill(const Principal& who, const std::string& id) {
    const std::shared_ptr<Execution> any = find(who, id);
    if (any->finished()) return;
    try {
        signal(who, id, "KILL");
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Conflict) throw;  // it ended meanwhile: that is what was asked
    }
}

}  // namespace hearth::controller
