#include "controller/executions/ExecutionEnds.h"

#include <chrono>
#include <utility>

#include "base/ScopeExit.h"
#include "controller/workspaces/SandboxUse.h"

namespace hearth::controller {
namespace {

/// Four tenants whose sandboxes do not answer leave one to a fifth.
constexpr std::size_t kThreads = 16;
constexpr std::size_t kReaders = 4;
/// The delay of follow-up work, which would otherwise share the processor with the answer.
constexpr auto kBehindAnswer = std::chrono::milliseconds(2);

}  // namespace

ExecutionEnds::ExecutionEnds(LiveExecutions& live, ArtifactCollector& artifacts,
                             pool::SandboxRuntime& runtime, WorkQueue& work, const History& history)
    : live_(live),
      artifacts_(artifacts),
      runtime_(runtime),
      work_(work),
      history_(history),
      readers_(history.clock, kReaders, "results"),
      executor_(history.clock, kThreads, "execution-ends") {}

LiveExecution::Reports ExecutionEnds::reports() {
    LiveExecution::Reports reports;
    reports.unread = [line = lifeline_.line()](const ExecutionPtr& which) {
        return line.reach([&](ExecutionEnds& ends) {
            ends.readers_.run(which->workspace()->facts().tenant, ends.readResults(which));
        });
    };
    reports.ended = [line = lifeline_.line()](const ExecutionPtr& which) {
        return line.reach([&](ExecutionEnds& ends) { ends.begin(which); });
    };
    return reports;
}

void ExecutionEnds::begin(const ExecutionPtr& execution) {
    Task<> rest = end(execution);
    if (!rest.run()) executor_.run(execution->workspace()->facts().tenant, std::move(rest));
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frames keep them
Task<> ExecutionEnds::end(ExecutionPtr execution) {
    Task<> steps = gather(execution);
    try {
        co_await steps;
    } catch (const std::exception& e) {  // nothing would report the end later
        history_.log.error("execution.end_failed",
                           {{"execution", execution->id()}, {"error", e.what()}});
    }
    const ScopeExit concluded([&execution] { execution->conclude(); });
    release(*execution);
}

Task<> ExecutionEnds::gather(ExecutionPtr execution) {
    WaitablePtr results = execution->resultsRead();
    co_await results;
    if (execution->wantsArtifacts()) {
        auto turn = itsTurn();
        co_await turn;
        execution->collected(artifactsOf(*execution));
    }
    if (mayHaveMetOom(*execution)) {
        auto turn = itsTurn();
        co_await turn;
        lookForOom(*execution);
    }
}

Task<> ExecutionEnds::readResults(ExecutionPtr execution) {
    while (execution->readResult()) {
        auto turn = itsTurn();
        co_await turn;
    }
}
// NOLINTEND(performance-unnecessary-value-param)

CollectedArtifacts ExecutionEnds::artifactsOf(const LiveExecution& execution) {
    try {
        return artifacts_.collect(execution);
    } catch (const std::exception& e) {  // the run itself has ended well
        history_.log.warn("artifacts.failed", {{"execution", execution.id()}, {"error", e.what()}});
        return {.items = {}, .truncated = true};
    }
}

bool ExecutionEnds::mayHaveMetOom(const LiveExecution& execution) const {
    // An execution that was never sent met no OOM.
    return execution.mayHaveMetOom(execution.workspace()->facts().limits.memory_bytes) &&
           live_.find(execution.id());
}

void ExecutionEnds::lookForOom(LiveExecution& execution) {
    // All executions of a lost sandbox end at once: its end counted the kills for all of them.
    Workspace& workspace = *execution.workspace();
    if (sawOom(workspace) || (execution.agentLost() && workspace.lostToMemory())) {
        execution.oomSeen();
    }
}

bool ExecutionEnds::sawOom(Workspace& workspace) {
    const pool::SandboxId& sandbox = workspace.facts().sandbox;
    try {
        const std::optional<pool::SandboxUsage> usage = sandboxUse(runtime_, workspace);
        return usage && workspace.sawOom(usage->oom_kills);
    } catch (const std::exception& e) {
        // The execution ends all the same: nothing would report its end later.
        history_.log.warn("execution.usage_unknown", {{"sandbox", sandbox}, {"error", e.what()}});
        return false;
    }
}

void ExecutionEnds::release(const LiveExecution& execution) {
    const std::shared_ptr<Workspace>& workspace = execution.workspace();
    const WorkspaceFacts& facts = workspace->facts();
    if (live_.find(execution.id())) workspace->resultPending();
    workspace->workEnded(Activity::Execution, history_.clock.now());
    if (const std::string context = execution.context(); !context.empty()) {
        workspace->contexts().end(context, execution.id());
        if (execution.tookContext() && workspace->contexts().eraseWith(context, execution.id())) {
            history_.journal.contextEnded(context, toUnixMillis(history_.clock.wall()), "died");
            history_.metrics.contextEnded(facts.pool, "died");
            history_.events.publish({.type = "context.ended",
                                     .resource = context,
                                     .pool = facts.pool,
                                     .tenant = facts.tenant,
                                     .reason = "died",
                                     .message = "a context ended with its execution",
                                     .trace_id = execution.facts().trace.trace_id});
        }
    }
    // This thread may read the agent's connection, so the slow part follows the answer.
    work_.addAfter({WorkKind::Execution, execution.id(), facts.tenant}, kBehindAnswer);
}

}  // namespace hearth::controller
