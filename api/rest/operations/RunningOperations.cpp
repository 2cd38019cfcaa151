#include "api/rest/model/Answers.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {
namespace {

using controller::ExecutionView;

void runningFields(Shape<ExecutionView>& shape) {
    shape.schema()
        .named("RunningExecution")
        .describe("An execution that runs; GET /v1/executions/{execution} has its output");
    shape.field("id", &ExecutionView::id)
        .field("workspaceId", &ExecutionView::workspace_id)
        .field("pool", &ExecutionView::pool)
        .field("tenant", &ExecutionView::tenant)
        .orNull("language", &ExecutionView::language, "null for a command")
        .field("background", &ExecutionView::background)
        .field("startedAt", &ExecutionView::started_at, Schema::string(kDateTime));
}

}  // namespace

Operations runningOperations(const controller::Services& services) {
    static const Shape<ExecutionView> shape(runningFields);
    Operation list("GET", "/v1/executions", "listRunning", "The executions that run now",
                   "Executions");
    list.description =
        "Over all of your workspaces, and of one shots, in the order of their ids. Admins get all "
        "tenants'. Ended ones are listed by workspace.";
    list.parameters = wholeListParameters();
    list.answers = {
        {200, "A page of running executions", listSchema(shape.schema(), "RunningExecutionList")}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.executions.running(call.who),
                                 [](const auto& execution) { return execution->id(); });
        Json items = Json::array();
        for (const auto& execution : page.items) {
            items.push_back(shape.json(execution->viewUpTo(0)));
        }
        return jsonResponse(listJson(std::move(items), page.next_cursor));
    };
    Operations all;
    all.push_back(std::move(list));
    return all;
}

}  // namespace hearth::rest
