#include "api/rest/model/Answers.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {

using controller::GpuView;
using controller::Role;
using controller::Services;

Operations gpuOperations(const Services& services) {
    Operations all;
    Operation list("GET", "/v1/gpus", "listGpus", "The machine's GPUs", "GPUs");
    list.description =
        "Users find the products in GET /v1/capabilities, and the devices of a workspace in the "
        "workspace.";
    list.role = Role::Operator;
    list.parameters = wholeListParameters();
    list.answers = {{200, "By uuid", listSchema<GpuView>("GpuList")}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.gpus.list(call.who),
                                 [](const GpuView& view) { return view.uuid; });
        return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
    };
    all.push_back(std::move(list));

    const std::string one = "/v1/gpus/{uuid}";
    Operation get("GET", one, "getGpu", "One GPU and its holders", "GPUs");
    get.role = Role::Operator;
    get.answers = {{200, "The device", schemaOf<GpuView>()}};
    get.problems = {ErrorCode::NotFound};
    get.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.gpus.get(call.who, call.param("uuid"))));
    };
    all.push_back(std::move(get));

    Operation scrub("POST", one + "/scrub", "scrubGpu", "Scrub a condemned GPU again", "GPUs");
    scrub.description =
        "If its memory can be overwritten this time, it is given out again. The answer comes "
        "before the scrub has ended. 409 where the device is not Condemned.";
    scrub.role = Role::Operator;
    scrub.answers = {{202, "It will be scrubbed", schemaOf<GpuView>()}};
    scrub.problems = {ErrorCode::NotFound, ErrorCode::Conflict};
    scrub.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.gpus.scrub(call.who, call.param("uuid"))), 202);
    };
    all.push_back(std::move(scrub));
    return all;
}

}  // namespace hearth::rest
