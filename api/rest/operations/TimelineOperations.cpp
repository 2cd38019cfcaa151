#include "api/rest/model/Answers.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {

using controller::Services;

Operations timelineOperations(const Services& services) {
    Operations all;
    Operation workspace("GET", "/v1/workspaces/{workspace}/timeline", "getWorkspaceTimeline",
                        "Why its claim took so long", "Workspaces");
    workspace.description =
        "Where the time of its claim went, what the pool and the machine were like then, and one "
        "sentence that names the largest cause. Kept for 24 hours after its end. Operators may ask "
        "about every tenant's.";
    workspace.answers = {{200, "Its stages, in their order", schemaOf<controller::Timeline>()}};
    workspace.problems = {ErrorCode::NotFound};
    workspace.handle = [&services](Call& call) {
        return jsonResponse(
            jsonOf(services.timelines.ofWorkspace(call.who, call.param("workspace"))));
    };
    all.push_back(std::move(workspace));

    Operation execution("GET", "/v1/executions/{execution}/timeline", "getExecutionTimeline",
                        "Why it took so long", "Executions");
    execution.description =
        "The same for an execution; while it runs, up to now. That of a one shot begins with its "
        "claim.";
    execution.answers = {{200, "Its stages, in their order", schemaOf<controller::Timeline>()}};
    execution.problems = {ErrorCode::NotFound};
    execution.handle = [&services](Call& call) {
        return jsonResponse(
            jsonOf(services.timelines.ofExecution(call.who, call.param("execution"))));
    };
    all.push_back(std::move(execution));
    return all;
}

}  // namespace hearth::rest
