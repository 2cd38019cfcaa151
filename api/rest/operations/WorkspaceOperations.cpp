#include "api/http/TaskAnswer.h"
#include "api/rest/model/Answers.h"
#include "api/rest/model/Requests.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {
namespace {

using controller::Services;
using controller::WorkspaceView;

const std::string kOne = "/v1/workspaces/{workspace}";

Operation workspaceOperation(std::string method, std::string pattern, std::string id,
                             std::string summary) {
    Operation op(std::move(method), std::move(pattern), std::move(id), std::move(summary),
                 "Workspaces");
    op.problems = {ErrorCode::NotFound, ErrorCode::Gone};
    return op;
}

controller::ListQuery listQuery(const Call& call) {
    controller::ListQuery query;
    query.limit = call.queryOr<std::size_t>("limit", 100);
    query.cursor = call.queryOr<std::string>("cursor", "");
    if (const auto labels = call.query.find("label"); labels != call.query.end()) {
        for (const Json& item : *labels) {
            const auto& text = item.get_ref<const std::string&>();
            const std::size_t equals = text.find('=');
            query.labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    return query;
}

controller::WorkspaceRequest requestOf(const Call& call, const Json& body) {
    controller::WorkspaceRequest request = readWorkspaceRequest(body);
    request.idempotency_key = call.idempotency_key;
    request.fingerprint = call.fingerprint;
    request.started_at = call.request.startedAt();
    return request;
}

Task<api::Response> createdAnswer(Task<WorkspaceView> creating, std::string trace_id) {
    const WorkspaceView view = co_await creating;
    api::Response response = jsonResponse(workspaceJson(view, trace_id), 201);
    response.headers.add("Location", "/v1/workspaces/" + view.id);
    if (view.claim) sayTimed(response, *view.claim);
    if (view.replayed) sayReplayed(response);
    co_return response;
}

Task<api::Response> createdAllAnswer(Task<std::vector<WorkspaceView>> creating,
                                     std::string trace_id) {
    const std::vector<WorkspaceView> views = co_await creating;
    Json items = Json::array();
    bool replayed = false;
    for (const WorkspaceView& view : views) {
        items.push_back(workspaceJson(view, trace_id));
        replayed = replayed || view.replayed;
    }
    api::Response response = jsonResponse(listJson(std::move(items), ""), 201);
    if (replayed) sayReplayed(response);
    co_return response;
}

Operation createWorkspaceOperation(const Services& services) {
    Operation op =
        workspaceOperation("POST", "/v1/workspaces", "createWorkspace", "Claim a workspace");
    op.description =
        "Takes a warm sandbox from the pool and binds it. `image`, `language` and `network` select "
        "or narrow a pool. If no pool has the image and the operator allows it without one, a "
        "cold sandbox is made. Fetching its image may take minutes; if the claim cannot wait that "
        "long, it gets 503 with Retry-After and the fetch continues.";
    op.idempotent = true;
    op.body_kind = Body::OptionalJson;
    op.body = workspaceRequestSchema();
    op.parameters = {idempotencyKeyParameter()};
    op.answers = {{201, "The workspace; Location names it", schemaOf<WorkspaceView>()}};
    op.problems = {ErrorCode::NotFound,      ErrorCode::IdempotencyInFlight,
                   ErrorCode::Gone,  // an Idempotency-Key whose workspace has ended
                   ErrorCode::InvalidSpec,   ErrorCode::IdempotencyMismatch,
                   ErrorCode::PoolExhausted, ErrorCode::QuotaExceeded,
                   ErrorCode::Unsupported,   ErrorCode::SandboxLost,
                   ErrorCode::PoolDegraded,  ErrorCode::PayloadTooLarge,
                   ErrorCode::Unavailable,   ErrorCode::Deadline,
                   ErrorCode::DiskFull};
    op.handle = [&services](Call& call) {
        return api::answerOf(call.request, createdAnswer(services.workspaces.create(
                                                             call.who, requestOf(call, call.body)),
                                                         call.request.traceId()));
    };
    return op;
}

Operation createWorkspacesOperation(const Services& services) {
    Operation op = workspaceOperation("POST", "/v1/workspaces:batch", "createWorkspaces",
                                      "Claim several workspaces, all or none");
    op.description =
        "`count` equal workspaces of one pool. The claim waits in line as one claimant and holds "
        "no sandbox meanwhile; if one cannot be bound, the others end. 422 if `count` is more than "
        "the pool or the quota has in all. An Idempotency-Key finds all of them again.";
    op.idempotent = true;
    op.body_kind = Body::Json;
    op.body = workspacesRequestSchema();
    op.parameters = {idempotencyKeyParameter()};
    op.answers = {{201, "All of them", listSchema<WorkspaceView>("WorkspaceBatch")}};
    op.problems = createWorkspaceOperation(services).problems;
    op.handle = [&services](Call& call) {
        const auto count = call.body.at("count").get<std::size_t>();
        Json body = call.body;
        body.erase("count");
        return api::answerOf(
            call.request,
            createdAllAnswer(services.workspaces.createAll(call.who, requestOf(call, body), count),
                             call.request.traceId()));
    };
    return op;
}

Operation listWorkspacesOperation(const Services& services) {
    Operation op = workspaceOperation("GET", "/v1/workspaces", "listWorkspaces", "Your workspaces");
    op.description =
        "Operators also get other tenants' workspaces, without name and labels; admins get all of "
        "them.";
    op.parameters = pageParameters();
    op.parameters.push_back(
        queryParameter("label", Schema::array(Schema::string(kLabelSelector)).sizes(0, 16),
                       "key=value; may stand several times, all must fit"));
    op.answers = {{200, "A page of workspaces", workspaceListSchema()}};
    op.problems = {};
    op.handle = [&services](Call& call) {
        const auto page = services.workspaces.list(call.who, listQuery(call));
        Json items = Json::array();
        for (const auto& view : page.items) items.push_back(workspaceJson(view));
        Json answer = listJson(std::move(items), page.next_cursor);
        answer["unanswered"] = page.unanswered;
        return jsonResponse(answer);
    };
    return op;
}

Operation patchWorkspaceOperation(const Services& services) {
    Operation op =
        workspaceOperation("PATCH", kOne, "patchWorkspace", "Change labels and deadlines");
    op.body_kind = Body::Json;
    op.body = workspacePatchSchema();
    op.answers = {
        {200, "The workspace; its agent has taken the deadlines", schemaOf<WorkspaceView>()}};
    op.problems.push_back(ErrorCode::SandboxLost);
    op.problems.push_back(ErrorCode::Deadline);
    op.handle = [&services](Call& call) {
        return jsonResponse(workspaceJson(services.workspaces.patch(
            call.who, call.param("workspace"), readWorkspacePatch(call.body))));
    };
    return op;
}

}  // namespace

Operations workspaceOperations(const Services& services) {
    Operations all;
    all.push_back(listWorkspacesOperation(services));
    all.push_back(createWorkspaceOperation(services));
    all.push_back(createWorkspacesOperation(services));

    Operation get = workspaceOperation("GET", kOne, "getWorkspace", "One workspace");
    get.description =
        "Does not count as activity. An operator sees another tenant's workspace without name and "
        "labels, and why it ended.";
    get.answers = {{200, "The workspace", schemaOf<WorkspaceView>()}};
    get.handle = [&services](Call& call) {
        return jsonResponse(
            workspaceJson(services.workspaces.get(call.who, call.param("workspace"))));
    };
    all.push_back(std::move(get));
    all.push_back(patchWorkspaceOperation(services));

    Operation remove = workspaceOperation("DELETE", kOne, "deleteWorkspace", "End a workspace");
    remove.description =
        "Idempotent. After the answer the workspace takes no more calls. Operators may end other "
        "tenants', "
        "too.";
    remove.answers = {{204, "Ended", {}, {}}};
    remove.problems = {ErrorCode::NotFound};
    remove.handle = [&services](Call& call) {
        services.workspaces.close(call.who, call.param("workspace"));
        return emptyResponse();
    };
    all.push_back(std::move(remove));

    Operation touch =
        workspaceOperation("POST", kOne + "/touch", "touchWorkspace", "Count as activity");
    touch.answers = {{200, "The workspace with its new idle deadline", schemaOf<WorkspaceView>()}};
    touch.problems.push_back(ErrorCode::SandboxLost);
    touch.problems.push_back(ErrorCode::Deadline);
    touch.handle = [&services](Call& call) {
        return jsonResponse(
            workspaceJson(services.workspaces.touch(call.who, call.param("workspace"))));
    };
    all.push_back(std::move(touch));

    Operation usage =
        workspaceOperation("GET", kOne + "/usage", "getWorkspaceUsage", "Its current usage");
    usage.answers = {
        {200, "CPU, memory now and peak, processes, disk", schemaOf<controller::WorkspaceUsage>()}};
    usage.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.workspaces.usage(call.who, call.param("workspace"))));
    };
    all.push_back(std::move(usage));

    Operation egress = workspaceOperation("GET", kOne + "/egress", "getWorkspaceEgress",
                                          "Its requests to the outside");
    egress.answers = {{200, "Requests by destination and decision, never their content",
                       schemaOf<egress::EgressReport>()}};
    egress.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.workspaces.egress(call.who, call.param("workspace"))));
    };
    all.push_back(std::move(egress));
    return all;
}

}  // namespace hearth::rest
