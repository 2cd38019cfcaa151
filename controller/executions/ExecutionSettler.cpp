#include "controller/executions/ExecutionSettler.h"

#include <map>
#include <utility>
#include <vector>

#include "base/CrashPoint.h"
#include "controller/executions/StoredExecution.h"
#include "controller/workspaces/Pauser.h"

namespace hearth::controller {
namespace {

constexpr auto kForgetLater = std::chrono::seconds(5);
/// The delay of forgetting small results: they cost the agent little.
constexpr auto kForgetSmall = std::chrono::milliseconds(250);
constexpr std::size_t kSmallOutput = 16U << 10U;
/// A one shot left by a crash ends this long after the start, unless its execution continues.
constexpr auto kRetryOfOneShot = std::chrono::seconds(2);
constexpr auto kOverdueEvery = std::chrono::seconds(1);
/// An agent that has not ended an execution this long after its deadline is broken or starved.
constexpr auto kAgentGrace = std::chrono::seconds(20);
constexpr auto kOverdueAnswer = std::chrono::seconds(1);
/// After a silence an agent may be late in ending overdue executions.
constexpr auto kCatchUp = std::chrono::seconds(20);
/// How long a sandbox is kept for records that the disk does not take.
constexpr auto kRecordWithin = std::chrono::seconds(5);
constexpr auto kFlushWithin = std::chrono::seconds(1);

}  // namespace

ExecutionSettler::ExecutionSettler(LiveExecutions& live, WorkspaceTable& table,
                                   WorkspaceTerminator& terminator, WorkQueue& work,
                                   const History& history)
    : live_(live), table_(table), terminator_(terminator), work_(work), history_(history) {}

void ExecutionSettler::record(const LiveExecution& execution, const ExecutionView& view) const {
    const LiveExecution::Facts& facts = execution.facts();
    const metrics::Tracer& tracer = history_.tracer;
    if (!tracer.records(facts.trace)) return;
    const LiveExecution::Times times = execution.times();
    const WorkspaceFacts& workspace = execution.workspace()->facts();
    metrics::Span span{
        .context = facts.trace,
        .parent = facts.caller,
        .name = "execution",
        .start = facts.requested,
        .end = times.ended,
        .attributes = {{"hearth.pool", workspace.pool},
                       {metrics::kTenantAttribute, workspace.tenant},
                       {"hearth.workspace.id", workspace.id},
                       {"hearth.execution.id", facts.id},
                       {"hearth.execution.language",
                        view.language.empty() ? "command" : view.language},
                       {"hearth.execution.status", kExecutionStatuses.of(view.status)}},
        .events = {},
        .failed = view.status == ExecutionStatus::Lost};
    if (view.exit_code)
        span.attributes.push_back({"process.exit.code", std::int64_t{*view.exit_code}});
    if (times.started != TimePoint{}) span.events.push_back({"started", times.started});
    if (times.first_output != TimePoint{}) {
        span.events.push_back({"first output", times.first_output});
    }
    // An execution of a later request is in that request's trace.
    if (workspace.trace.valid() && workspace.trace.trace_id != facts.trace.trace_id) {
        span.links.push_back(workspace.trace);
    }
    tracer.end(std::move(span));
}

ReconcileResult ExecutionSettler::settle(const std::string& id) {
    const std::shared_ptr<LiveExecution> execution = live_.find(id);
    if (!execution) return ReconcileResult::settled();
    if (!execution->finished()) return ReconcileResult::after(std::chrono::milliseconds(1));
    const std::shared_ptr<Workspace> workspace = execution->workspace();
    const WorkspaceFacts& facts = workspace->facts();
    const ExecutionView view = execution->viewUpTo(0);
    history_.metrics.execution(facts.pool, view.language.empty() ? "command" : view.language,
                               kExecutionStatuses.of(view.status), execution->runSeconds(),
                               execution->overheadSeconds(),
                               history_.tracer.recorded(execution->facts().trace));
    record(*execution, view);
    history_.events.publish({.type = "execution.finished",
                             .resource = id,
                             .pool = facts.pool,
                             .tenant = facts.tenant,
                             .reason = kExecutionStatuses.of(view.status),
                             .message = "an execution has ended",
                             .trace_id = execution->facts().trace.trace_id});
    const bool apart = keepsApart(view);
    ExecutionRecord record{id,
                           facts.id,
                           facts.tenant,
                           execution->facts().fingerprint,
                           executionDocument(view),
                           apart ? kOutputApart : packedOutput(*execution),
                           toUnixMillis(history_.clock.wall()),
                           view.started_at};
    std::function<void(const Journal::PutPiece&)> output;
    if (apart) {
        output = [execution](const Journal::PutPiece& put) { putApart(*execution, put); };
    }
    crashPoint("exec.before_durable");
    history_.journal.record(
        record,
        [line = lifeline_.line(), record, execution, &journal = history_.journal,
         kept = view.kept_bytes + view.result_bytes](bool durable) {
            // Open references then read the journal, so that they do not hold the memory.
            if (durable && record.output == kOutputApart) {
                execution->keptBy(storedExecution(record, journal));
            }
            line.reach([&](ExecutionSettler& settler) {
                settler.recorded(execution->id(), execution->workspace(), durable, kept);
            });
        },
        std::move(output), apart ? view.kept_bytes + view.result_bytes : 0);
    return ReconcileResult::settled();
}

void ExecutionSettler::recorded(const std::string& id, const std::shared_ptr<Workspace>& workspace,
                                bool durable, std::size_t kept_bytes) {
    crashPoint("exec.after_durable");
    // Its result is only in memory and in its sandbox; a later start reads it from the sandbox.
    if (!durable) return;
    live_.remove(id);
    workspace->resultKept();
    if (workspace->facts().one_shot) {
        work_.add({WorkKind::OneShot, workspace->facts().id, workspace->facts().tenant});
    } else if (workspace->active()) {
        // Forgetting is a request of its own to the agent, and could delay the tenant's next.
        const bool small = kept_bytes <= kSmallOutput;
        work_.addAfter(
            {WorkKind::Forget, workspace->facts().id + "/" + id, workspace->facts().tenant},
            small ? kForgetSmall : std::chrono::milliseconds(0));
    }
}

void ExecutionSettler::adoptOneShot(const Workspace& workspace) {
    work_.addAfter({WorkKind::AdoptedOneShot, workspace.facts().id, workspace.facts().tenant},
                   kRetryOfOneShot);
}

void ExecutionSettler::forgetSoon(const Workspace& workspace, const std::string& id) {
    work_.add({WorkKind::Forget, workspace.facts().id + "/" + id, workspace.facts().tenant});
}

ReconcileResult ExecutionSettler::forget(const std::string& name) {
    const std::size_t slash = name.find('/');
    const std::shared_ptr<Workspace> workspace = table_.find(name.substr(0, slash));
    if (!workspace) return ReconcileResult::settled();
    // A paused workspace is not resumed for this.
    if (workspace->silentSince() || !workspace->gate().holdIfAwake()) {
        return ReconcileResult::after(kForgetLater);
    }
    const Awake held(workspace);
    try {
        workspace->agent()->forget(name.substr(slash + 1));
    } catch (const agent::AgentError&) {
        // It has already forgotten.
    } catch (const agent::AgentLost&) {
        // A second without an answer proves nothing of a starved sandbox: other calls wait longer.
        return ReconcileResult::after(kForgetLater);
    }
    return ReconcileResult::settled();
}

bool ExecutionSettler::answers(const Workspace& workspace) {
    if (workspace.silentSince()) return false;
    try {
        workspace.agent()->touch(kOverdueAnswer);
    } catch (const agent::AgentLost& e) {
        terminator_.unanswered(workspace.facts().sandbox, e);
        return false;
    } catch (const agent::AgentError&) {  // an error is an answer, too
    }
    return true;
}

ReconcileResult ExecutionSettler::endOverdue() {
    const TimePoint now = history_.clock.now();
    std::map<std::shared_ptr<Workspace>, std::vector<std::shared_ptr<LiveExecution>>> late;
    std::vector<std::shared_ptr<Workspace>> waiting;
    for (const std::shared_ptr<LiveExecution>& execution : live_.all()) {
        if (execution->finished() && execution->workspace()->facts().one_shot) {
            waiting.push_back(execution->workspace());
        }
        const TimePoint by = execution->facts().ends_by;
        if (by == TimePoint{} || by + LiveExecution::kEndGrace > now) continue;
        if (!execution->hasEnded()) late[execution->workspace()].push_back(execution);
    }
    std::set<std::string> seen;
    for (const auto& [workspace, executions] : late) {
        const bool answers = this->answers(*workspace);
        for (const std::shared_ptr<LiveExecution>& execution : executions) {
            // A silent agent ends nothing here, and may have a backlog when it answers again.
            if (!answers) {
                execution->tellUnanswered();
            } else if (execution->facts().ends_by + kAgentGrace < now &&
                       now - workspace->answeredAt() >= kCatchUp) {
                seen.insert(execution->id());
                if (!answered_overdue_.contains(execution->id()) || execution->hasEnded()) continue;
                terminator_.lost(workspace->facts().sandbox,
                                 "the agent did not end an execution at its deadline");
                execution->endLost();
            }
        }
    }
    answered_overdue_ = std::move(seen);
    for (const std::shared_ptr<Workspace>& workspace : waiting) hold(*workspace, now);
    return ReconcileResult::after(kOverdueEvery);
}

bool ExecutionSettler::allRecorded(const pool::SandboxId& sandbox) {
    bool all = true;
    for (const std::shared_ptr<LiveExecution>& execution : live_.all()) {
        if (execution->workspace()->facts().sandbox != sandbox) continue;
        execution->lost(std::nullopt);  // as if its sandbox were gone already
        all = false;
    }
    if (all) history_.journal.flush(kFlushWithin);
    const TimePoint now = history_.clock.now();
    const MutexLock lock(mutex_);
    const TimePoint since = unrecorded_.try_emplace(sandbox, now).first->second;
    if (!all && now - since < kRecordWithin) return false;
    unrecorded_.erase(sandbox);
    return true;
}

void ExecutionSettler::hold(Workspace& workspace, TimePoint now) {
    try {
        if (workspace.touch(now)) workspace.agent()->touch(kOverdueAnswer);
    } catch (const agent::AgentError& e) {
        history_.log.warn("execution.not_held",
                          {{"workspace", workspace.facts().id}, {"error", e.what()}});
    } catch (const agent::AgentLost& e) {
        terminator_.unanswered(workspace.facts().sandbox, e);
    }
}

}  // namespace hearth::controller
