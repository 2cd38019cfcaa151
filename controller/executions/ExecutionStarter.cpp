#include "controller/executions/ExecutionStarter.h"

#include <utility>

#include "base/CrashPoint.h"
#include "base/Error.h"
#include "controller/executions/ExecutionPackages.h"
#include "controller/executions/LanguageChoice.h"
#include "controller/executions/ReplayedExecution.h"
#include "controller/packages/PackageSpec.h"
#include "controller/spec/PrewarmExecution.h"
#include "controller/workspaces/AgentErrors.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {
namespace {

/// Used for adopted executions: an agent does not report how much output it was asked to keep.
constexpr std::uint64_t kAdoptedOutputLimit = 16U << 20U;

Error busyContext() {
    return contextError(agent::AgentError("BUSY", "", Json::object()), "");
}

/// Passes the trace to the work's own instruments, in the variable that OpenTelemetry's environment
/// propagators use. Omits tracestate, which concerns only the caller and the systems before this
/// server. A trace that is not recorded is not passed on: there is nothing to continue.
void tellTrace(const TraceContext& trace, std::map<std::string, std::string>& env) {
    if (!trace.sampled) return;
    env.emplace("TRACEPARENT", traceParent(trace));
}

}  // namespace

ExecutionStarter::ExecutionStarter(LiveExecutions& live, ExecutionSettler& settler,
                                   ExecutionEnds& ends, WorkspaceAccess& access,
                                   WorkspaceTerminator& terminator,
                                   std::vector<egress::IndexKind> mirrored, const History& history)
    : live_(live),
      settler_(settler),
      ends_(ends),
      access_(access),
      terminator_(terminator),
      mirrored_(std::move(mirrored)),
      history_(history) {}

std::shared_ptr<LiveExecution> ExecutionStarter::make(LiveExecution::Facts facts,
                                                      const std::shared_ptr<Workspace>& workspace,
                                                      QuotaLedger::Hold quota) {
    LiveResults::Count count = [kept = live_.kept(), tenant = workspace->facts().tenant,
                                adopted = facts.adopted](std::uint64_t bytes) {
        return adopted ? kept.takeAnyway(tenant, bytes) : kept.take(tenant, bytes);
    };
    return std::make_shared<LiveExecution>(std::move(facts), workspace, history_.clock,
                                           ends_.reports(), std::move(count), std::move(quota));
}

ContextFacts ExecutionStarter::contextOf(const Workspace& workspace,
                                         const ExecutionRequest& request) {
    std::optional<ContextFacts> facts = workspace.contexts().find(request.context);
    if (!facts) access_.explainMissingContext(workspace.facts().tenant, request.context);
    const auto same = [&](const std::string& asked) {
        return asked == facts->language ||
               pool::languageAmong(asked, workspace.agent()->hello().languages) == facts->language;
    };
    if (!request.language.empty() && !same(request.language)) {
        throw Error(ErrorCode::InvalidArgument, "the context's language is " + facts->language)
            .field("/language", "must be the context's or absent");
    }
    return *facts;
}

agent::ExecRequest ExecutionStarter::workOf(const Workspace& workspace,
                                            const ExecutionRequest& request, const std::string& id,
                                            const TraceContext& trace) {
    agent::ExecRequest work;
    work.id = id;
    work.fingerprint = request.fingerprint;
    if (!request.context.empty()) {
        work.language = contextOf(workspace, request).language;
        work.context = request.context;
    } else if (request.code) {
        work.language = chooseLanguage(request.language, workspace.agent()->hello().languages);
    }
    if (wantsPackages(request)) {
        work.prepare =
            packagesFirst(request, work.language, shutWays(workspace.facts().network, mirrored_));
    }
    if (request.code) work.code = *request.code;
    if (request.command) work.command = *request.command;
    work.argv = request.argv;
    work.cwd = request.cwd;
    work.env = request.env;
    if (request.context.empty()) tellTrace(trace, work.env);
    work.stdin_open = request.stdin_open || request.stdin_bytes.has_value();
    work.pty = request.pty;
    work.timeout = request.timeout;
    work.output_limit = request.output_limit;
    work.background = request.background;
    work.paced = request.paced;
    return work;
}

LiveExecution::Facts ExecutionStarter::factsOf(const ExecutionRequest& request,
                                               const agent::ExecRequest& work) const {
    LiveExecution::Facts facts;
    facts.id = work.id;
    facts.fingerprint = request.fingerprint;
    facts.language = work.language;
    facts.context = request.context;
    facts.background = request.background;
    facts.paced = request.paced;
    facts.stdin_open = request.stdin_open || request.pty.has_value();
    facts.output_limit = request.output_limit;
    facts.stdin_bytes = request.stdin_bytes ? request.stdin_bytes->size() : 0;
    facts.collect = request.collect;
    facts.requested = request.started_at == TimePoint{} ? history_.clock.now() : request.started_at;
    if (request.timeout.count() > 0) facts.ends_by = history_.clock.now() + request.timeout;
    return facts;
}

std::shared_ptr<Execution> ExecutionStarter::launch(const std::shared_ptr<Workspace>& workspace,
                                                    const ExecutionRequest& request,
                                                    const std::string& id,
                                                    const TraceContext& trace,
                                                    const std::optional<ClaimLedger>& ledger) {
    const TraceContext context = history_.tracer.within(trace);
    agent::ExecRequest work = workOf(*workspace, request, id, context);
    LiveExecution::Facts facts = factsOf(request, work);
    facts.trace = context;
    facts.caller = trace.span_id;
    facts.claim = ledger;

    const Awake held = access_.awake(workspace);
    const TimePoint written_until = workspace->lastWrite(history_.clock.now());
    QuotaLedger::Hold quota =
        access_.quotas().reserve(workspace->facts().tenant, {.executions = 1});
    if (!workspace->workBegan(Activity::Execution, history_.clock.now())) {
        throw Error(ErrorCode::Gone, "the workspace has just ended").hint("open a new one");
    }
    if (!facts.collect.empty()) {
        facts.changed_since = ArtifactCollector::settle(written_until, history_.clock);
    }
    const std::shared_ptr<LiveExecution> execution =
        make(std::move(facts), workspace, std::move(quota));
    if (!enlist(execution)) return otherOf(id);
    const std::shared_ptr<agent::ExecHandle> handle = send(execution, std::move(work));
    execution->handle(handle);
    // Input cannot be resumed on a later connection: bytes that this one did not deliver are lost.
    if (request.stdin_bytes) handle->giveStdin(*request.stdin_bytes);
    return execution;
}

bool ExecutionStarter::enlist(const std::shared_ptr<LiveExecution>& execution) {
    bool added = false;
    try {
        added = live_.add(execution);
    } catch (const Error&) {
        execution->workspace()->workEnded(Activity::Execution, history_.clock.now());
        throw;
    }
    if (!added) execution->workspace()->workEnded(Activity::Execution, history_.clock.now());
    return added;
}

std::shared_ptr<Execution> ExecutionStarter::otherOf(const std::string& id) const {
    if (std::shared_ptr<LiveExecution> first = live_.find(id)) {
        return std::make_shared<ReplayedExecution>(std::move(first));
    }
    throw Error(ErrorCode::IdempotencyInFlight, "the first request is still being answered")
        .retryAfter(std::chrono::seconds(1));
}

std::shared_ptr<agent::ExecHandle> ExecutionStarter::send(
    const std::shared_ptr<LiveExecution>& execution, agent::ExecRequest work) {
    Workspace& workspace = *execution->workspace();
    std::shared_ptr<agent::ExecHandle> handle;
    try {
        if (!execution->facts().collect.empty()) work.note = execution->note();
        if (!work.context.empty() && !workspace.contexts().begin(work.context, work.id)) {
            throw busyContext();
        }
        crashPoint("exec.before_send");
        handle = workspace.agent()->exec(work, execution);
    } catch (const agent::AgentLost& e) {
        takeBack(*execution);
        access_.throwUnanswered(workspace, e);
    } catch (const Error&) {
        takeBack(*execution);
        throw;
    }
    crashPoint("exec.after_send");
    return handle;
}

void ExecutionStarter::takeBack(LiveExecution& execution) {
    live_.remove(execution.id());
    const std::string context = execution.context();
    if (!context.empty()) execution.workspace()->contexts().end(context, execution.id());
    execution.endLost();
}

void ExecutionStarter::adopt(const std::shared_ptr<Workspace>& workspace,
                             const agent::KnownExecution& known) {
    if (known.id == kPrewarmExecution) return;  // the sandbox's own, before it had a tenant
    if (!known.running && history_.journal.execution(known.id)) {
        settler_.forgetSoon(*workspace, known.id);
        return;
    }
    LiveExecution::Facts facts;
    facts.id = known.id;
    facts.fingerprint = known.fingerprint;
    facts.background = known.background;
    facts.had_ended = !known.running;
    facts.adopted = true;
    facts.trace = history_.tracer.within(workspace->facts().trace);
    facts.caller = workspace->facts().trace.span_id;
    facts.requested = known.started_at;
    facts.output_limit = kAdoptedOutputLimit;
    // Its note says whether artifacts are wanted, and the agent reports the note first.
    facts.changed_since = known.started_at;
    workspace->workBegan(Activity::Execution, known.started_at);
    QuotaLedger::Hold quota;
    if (known.running) {
        quota = access_.quotas().take(workspace->facts().tenant, {.executions = 1});
    }
    const std::shared_ptr<LiveExecution> execution =
        make(std::move(facts), workspace, std::move(quota));
    if (!live_.adopt(execution))
        return workspace->workEnded(Activity::Execution, history_.clock.now());
    try {
        execution->handle(workspace->agent()->attach(known.id, 0, execution, kAdoptedOutputLimit));
    } catch (const agent::AgentLost& e) {  // lost since it reported its executions
        terminator_.unanswered(workspace->facts().sandbox, e);
        execution->lost(std::nullopt);
    }
}

}  // namespace hearth::controller
