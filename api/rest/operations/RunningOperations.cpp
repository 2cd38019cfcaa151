#include "api/rest/model/Answers.h"
#include "api/rest/model/Views.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {
namespace {

Schema runningSchema() {
    return Schema::object()
        .required("id", Schema::string())
        .required("workspaceId", Schema::string())
        .required("pool", Schema::string())
        .required("tenant", Schema::string())
        .required("language", Schema::string().nullable().describe("null for a command"))
        .required("background", Schema::boolean())
        .required("startedAt", Schema::string(kDateTime))
        .describe("An execution that runs; GET /v1/executions/{execution} has its output")
        .named("RunningExecution");
}

Json runningJson(const controller::ExecutionView& view) {
    return {{"id", view.id},
            {"workspaceId", view.workspace_id},
            {"pool", view.pool},
            {"tenant", view.tenant},
            {"language", view.language.empty() ? Json(nullptr) : Json(view.language)},
            {"background", view.background},
            {"startedAt", view.started_at}};
}

}  // namespace

Operations runningOperations(const controller::Services& services) {
    Operation list("GET", "/v1/executions", "listRunning", "The executions that run now",
                   "Executions");
    list.description =
        "Over all of your workspaces, and of one shots, in the order of their ids. Admins get all "
        "tenants'. Ended ones are listed by workspace.";
    list.parameters = wholeListParameters();
    list.answers = {{200,
                     "A page of running executions",
                     listSchema(runningSchema(), "RunningExecutionList"),
                     {}}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.executions.running(call.who),
                                 [](const auto& execution) { return execution->id(); });
        Json items = Json::array();
        for (const auto& execution : page.items) {
            items.push_back(runningJson(execution->viewUpTo(0)));
        }
        return jsonResponse(listJson(std::move(items), page.next_cursor));
    };
    Operations all;
    all.push_back(std::move(list));
    return all;
}

}  // namespace hearth::rest
