#include "api/http/TaskAnswer.h"
#include "api/rest/model/Answers.h"
#include "api/rest/model/Requests.h"
#include "api/rest/operations/Tables.h"
#include "api/rest/streams/ExecutionAnswer.h"

namespace hearth::rest {

using controller::Services;

Operations packageOperations(const Services& services) {
    Operations all;
    Operation manage("POST", "/v1/workspaces/{workspace}/packages", "managePackages",
                     "Install packages, or show what is installed", "Packages");
    manage.description =
        "Runs pip or npm in the workspace, through the index that the operator mirrors: it needs a "
        "pool with network Mirror or Egress, except to check and to list. Work that takes longer "
        "than "
        "`waitSeconds` continues as the named execution; ask again with `check`, or look at "
        "the execution.";
    manage.idempotent = manage.replayed = true;
    manage.parameters = {idempotencyKeyParameter()};
    manage.body_kind = Body::Json;
    manage.body = packagesRequestSchema();
    manage.answers = {{200, "Each package and its state", schemaOf<controller::PackagesView>()}};
    manage.problems = {ErrorCode::NotFound,           ErrorCode::Gone,
                       ErrorCode::SandboxLost,        ErrorCode::Unsupported,
                       ErrorCode::QuotaExceeded,      ErrorCode::IdempotencyInFlight,
                       ErrorCode::IdempotencyMismatch};
    manage.handle = [&services](Call& call) {
        const controller::PackagesRequest request = readPackagesRequest(call.body);
        const auto begun = services.packages.begin(call.who, call.param("workspace"), request);
        const auto tell = [begun] {
            return jsonResponse(
                jsonOf(controller::PackageService::viewOf(*begun.execution, begun.names)));
        };
        if (!call.idempotency_key.empty()) {  // a kept answer must be complete when this returns
            begun.execution->wait(request.wait);
            return tell();
        }
        return api::answerOf(call.request,
                             whenFinished(services.clock, begun.execution,
                                          services.clock.now() + request.wait, tell),
                             tell);
    };
    all.push_back(std::move(manage));
    return all;
}

}  // namespace hearth::rest
