#include "api/rest/model/Answers.h"
#include "api/rest/model/Requests.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {
namespace {

using controller::ContextView;
using controller::Services;

Operation contextOperation(std::string method, std::string pattern, std::string id,
                           std::string summary) {
    Operation op(std::move(method), std::move(pattern), std::move(id), std::move(summary),
                 "Contexts");
    op.problems = {ErrorCode::NotFound, ErrorCode::Gone, ErrorCode::SandboxLost,
                   ErrorCode::Deadline};
    return op;
}

Operation createContextOperation(const Services& services) {
    Operation op = contextOperation("POST", "/v1/workspaces/{workspace}/contexts", "createContext",
                                    "Start a stateful interpreter");
    op.description =
        "Variables survive from one execution in it to the next; executions with its id as "
        "`context` run one after the other. It ends with its workspace, by DELETE, or when its "
        "interpreter dies. A workspace has at most 8. With `name`: 200 and the context that has "
        "this name, if there is one.";
    op.idempotent = true;
    op.body_kind = Body::OptionalJson;
    op.body = contextRequestSchema();
    op.parameters = {idempotencyKeyParameter()};
    op.answers = {{201, "The context; Location names it", schemaOf<ContextView>()},
                  {200, "It was there already", schemaOf<ContextView>()}};
    op.problems.insert(op.problems.end(), {ErrorCode::IdempotencyMismatch, ErrorCode::QuotaExceeded,
                                           ErrorCode::Unsupported});
    op.handle = [&services](Call& call) {
        controller::ContextRequest request = readContextRequest(call.body);
        if (!request.name.empty() && !call.idempotency_key.empty()) {
            throw Error(ErrorCode::InvalidArgument,
                        "a name and an Idempotency-Key exclude each other")
                .field("/name", "must be absent with an Idempotency-Key")
                .hint("a name is enough: a repeated request finds the same context");
        }
        request.idempotency_key = call.idempotency_key;
        request.fingerprint = call.fingerprint;
        const ContextView view =
            services.contexts.create(call.who, call.param("workspace"), request);
        const bool named = !request.name.empty();
        api::Response response = jsonResponse(jsonOf(view), named && view.replayed ? 200 : 201);
        response.headers.add("Location", "/v1/contexts/" + view.id);
        if (view.replayed && !named) sayReplayed(response);
        return response;
    };
    return op;
}

}  // namespace

Operations contextOperations(const Services& services) {
    Operations all;
    all.push_back(createContextOperation(services));

    Operation list = contextOperation("GET", "/v1/workspaces/{workspace}/contexts", "listContexts",
                                      "The contexts of a workspace");
    list.parameters = wholeListParameters();
    list.answers = {{200, "All of them", listSchema<ContextView>("ContextList")}};
    list.handle = [&services](Call& call) {
        const auto page =
            pageOf(call, services.contexts.list(call.who, call.param("workspace")),
                   [](const ContextView& view) { return view.created_at + " " + view.id; });
        return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
    };
    all.push_back(std::move(list));

    const std::string one = "/v1/contexts/{context}";
    Operation get = contextOperation("GET", one, "getContext", "One context");
    get.answers = {{200, "The context", schemaOf<ContextView>()}};
    get.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.contexts.get(call.who, call.param("context"))));
    };
    all.push_back(std::move(get));

    Operation interrupt =
        contextOperation("POST", one + "/interrupt", "interruptContext", "Interrupt what it runs");
    interrupt.description = "Python's KeyboardInterrupt; the state stays. 409 if it runs nothing.";
    interrupt.answers = {{204, "Interrupted", {}, {}}};
    interrupt.problems.push_back(ErrorCode::Conflict);
    interrupt.handle = [&services](Call& call) {
        services.contexts.interrupt(call.who, call.param("context"));
        return emptyResponse();
    };
    all.push_back(std::move(interrupt));

    Operation restart = contextOperation("POST", one + "/restart", "restartContext", "Empty it");
    restart.description =
        "The same context with a new interpreter; the execution it runs is killed.";
    restart.answers = {{200, "The context, empty", schemaOf<ContextView>()}};
    restart.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.contexts.restart(call.who, call.param("context"))));
    };
    all.push_back(std::move(restart));

    Operation remove = contextOperation("DELETE", one, "deleteContext", "End a context");
    remove.description = "Idempotent. Kills the execution it runs, with every process it started.";
    remove.answers = {{204, "Ended", {}, {}}};
    remove.problems = {ErrorCode::NotFound, ErrorCode::SandboxLost, ErrorCode::Deadline};
    remove.handle = [&services](Call& call) {
        services.contexts.remove(call.who, call.param("context"));
        return emptyResponse();
    };
    all.push_back(std::move(remove));
    return all;
}

}  // namespace hearth::rest
