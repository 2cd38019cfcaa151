#include "controller/services/TimelineService.h"

#include "base/Error.h"
#include "base/Units.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {
namespace {

/// Time that no stage accounts for becomes a stage of its own if it is longer than this.
constexpr double kUnexplainedMs = 0.05;

void addStage(Timeline& timeline, std::string name, double ms) {
    if (ms > 0) timeline.stages.push_back({std::move(name), ms});
}

double stagesTotal(const Timeline& timeline) {
    double all = 0;
    for (const Timeline::Stage& stage : timeline.stages) all += stage.ms;
    return all;
}

/// Only operators see how busy the machine was: others could measure their neighbours by it.
ClaimScene sceneFor(const Principal& who, ClaimScene scene) {
    if (!who.atLeast(Role::Operator)) scene.pressure.reset();
    return scene;
}

void addClaim(Timeline& timeline, const ClaimLedger& ledger) {
    // The server's own share comes before the claim asks for a sandbox.
    double known = 0;
    eachStage(ledger, [&](const char*, double ms) { known += ms; });
    if (ledger.total_ms - known > kUnexplainedMs) {
        addStage(timeline, "server", ledger.total_ms - known);
    }
    eachStage(ledger, [&](const char* name, double ms) { addStage(timeline, name, ms); });
}

}  // namespace

Timeline TimelineService::ofWorkspace(const Principal& who, const std::string& id) {
    const std::optional<WorkspaceRecord> record = history_.journal.workspace(id);
    const bool elsewhere = !who.workspace.empty() && who.workspace != id;
    if (!record || elsewhere || !WorkspaceAccess::sees(who, record->tenant)) {
        throw Error(ErrorCode::NotFound, "no workspace " + id);
    }
    Timeline timeline;
    timeline.id = id;
    timeline.pool = record->pool;
    if (record->story) {
        const ClaimStory& story = *record->story;
        timeline.trace_id = story.trace_id;
        timeline.total_ms = story.ledger.total_ms;
        // The record has the time of the bind, not of the request.
        timeline.started_at =
            formatRfc3339(fromUnixMillis(record->created_ms) -
                          std::chrono::duration_cast<WallTime::duration>(
                              std::chrono::duration<double, std::milli>(timeline.total_ms)));
        timeline.scene = sceneFor(who, story.scene);
        addClaim(timeline, story.ledger);
    } else {
        timeline.started_at = formatUnixMillis(record->created_ms);
    }
    explain(timeline);
    return timeline;
}

Timeline TimelineService::ofExecution(const Principal& who, const std::string& id) {
    const ExecutionView view = executions_.find(who, id)->viewUpTo(0);
    Timeline timeline;
    timeline.id = id;
    timeline.execution = true;
    timeline.pool = view.pool;
    timeline.trace_id = view.trace_id;
    timeline.started_at = view.started_at;
    timeline.running = view.status == ExecutionStatus::Running;
    timeline.first_output_ms = view.first_output_ms;
    timeline.cpu_ms = static_cast<double>(view.cpu_ms);
    timeline.out_of_memory = view.status == ExecutionStatus::Oom;
    if (view.claim) {
        addClaim(timeline, *view.claim);
        const auto record = history_.journal.workspace(view.workspace_id);
        if (record && record->story) timeline.scene = sceneFor(who, record->story->scene);
    }
    const double packages = view.packages ? static_cast<double>(view.packages->duration_ms) : 0;
    if (view.start_ms) addStage(timeline, "start", *view.start_ms - stagesTotal(timeline));
    addStage(timeline, "packages", packages);
    if (view.duration_ms) {
        addStage(timeline, "run", *view.duration_ms - packages);
    } else if (view.elapsed_ms) {
        addStage(timeline, view.start_ms ? "run" : "start",
                 *view.elapsed_ms - stagesTotal(timeline));
    }
    timeline.total_ms = stagesTotal(timeline);
    explain(timeline);
    return timeline;
}

}  // namespace hearth::controller
