#include "api/rest/Answers.h"
#include "api/rest/Requests.h"
#include "api/rest/Tables.h"
#include "api/rest/Views.h"

namespace hearth::rest {

using controller::Services;

Operations packageOperations(const Services& services) {
    Operations all;
    Operation manage("POST", "/v1/workspaces/{workspace}/packages", "managePackages",
                     "Install packages, or tell of them", "Packages");
    manage.description =
        "Runs pip or npm in the workspace, through the index that the operator mirrors: it needs a "
        "pool with network Mirror or Egress, except to check and to list. What takes longer than "
        "`waitSeconds` goes on as the execution that is named; ask again with `check`, or look at "
        "the execution.";
    manage.idempotent = manage.replayed = true;
    manage.parameters = {idempotencyKeyParameter()};
    manage.body_kind = Body::Json;
    manage.body = packagesRequestSchema();
    manage.answers = {{200, "Each package and its state", packagesSchema(), {}}};
    manage.problems = {ErrorCode::NotFound,           ErrorCode::Gone,
                       ErrorCode::SandboxLost,        ErrorCode::Unsupported,
                       ErrorCode::QuotaExceeded,      ErrorCode::IdempotencyInFlight,
                       ErrorCode::IdempotencyMismatch};
    manage.handle = [&services](Call& call) {
        return jsonResponse(packagesJson(services.packages.manage(call.who, call.param("workspace"),
                                                                  readPackagesRequest(call.body))));
    };
    all.push_back(std::move(manage));
    return all;
}

}  // namespace hearth::rest
