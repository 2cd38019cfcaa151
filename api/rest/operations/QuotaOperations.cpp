#include "api/rest/model/Answers.h"
#include "api/rest/model/Views.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"
#include "controller/contract/TenantName.h"

namespace hearth::rest {
namespace {

using controller::Role;
using controller::Services;

Schema quotaFields() {
    return Schema::object()
        .optional("workspaces", Schema::integer(0, 1'000'000).describe("Open at once"))
        .optional("cpu", Schema::string().sizes(1, 32).describe(
                             "Cores of its workspaces together, such as \"8\" or \"500m\""))
        .optional("memory", Schema::string().sizes(1, 32).describe(
                                "Of its workspaces together, such as \"16Gi\""))
        .optional("executions", Schema::integer(0, 1'000'000).describe("Running at once"))
        .optional("claimsPerSecond", Schema::number().describe("0.001 to 1000000"))
        .optional(
            "claimsBurst",
            Schema::integer(1, 1'000'000).describe("Claims at once; without it two seconds' worth"))
        .example({{"workspaces", 20}, {"cpu", "16"}, {"memory", "32Gi"}});
}

Schema quotaSchema() {
    return Schema::object()
        .required("tenant", Schema::string().describe("\"*\": each tenant without one of its own"))
        .required("source", Schema::oneOf(controller::kQuotaSources.all())
                                .describe("Where it stands: everyone means in \"*\""))
        .required("quota", quotaFields().named("TenantQuota"))
        .required("used", Schema::object()
                              .required("workspaces", Schema::integer())
                              .required("cpu", Schema::string())
                              .required("memory", Schema::string())
                              .required("executions", Schema::integer())
                              .named("QuotaUse"))
        .example(
            {{"tenant", "ci"},
             {"source", "store"},
             {"quota", {{"workspaces", 20}, {"cpu", "16"}, {"memory", "32Gi"}}},
             {"used", {{"workspaces", 3}, {"cpu", "3"}, {"memory", "1536Mi"}, {"executions", 1}}}})
        .named("Quota");
}

/// The tenant of the path, which may be the sign for all others.
std::string tenantOf(const Call& call) {
    const std::string tenant = call.param("tenant");
    if (tenant == controller::kEveryone || controller::isTenantName(tenant)) return tenant;
    throw Error(ErrorCode::NotFound, "there is no tenant of such a name")
        .hint(std::string("a name ") + controller::kTenantNameRule);
}

}  // namespace

Operations quotaOperations(const Services& services) {
    Operations all;
    Operation list("GET", "/v1/quotas", "listQuotas", "Quotas and what is used of them", "Quotas");
    list.description =
        "Of every tenant that has a quota or uses anything; users see their own tenant's alone.";
    list.parameters = wholeListParameters();
    list.answers = {{200, "The quotas", listSchema(quotaSchema(), "QuotaList"), {}}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.quotas.list(call.who),
                                 [](const controller::QuotaView& view) { return view.tenant; });
        Json items = Json::array();
        for (const auto& view : page.items) items.push_back(quotaViewJson(view));
        return jsonResponse(listJson(std::move(items), page.next_cursor));
    };
    all.push_back(std::move(list));

    Operation one("GET", "/v1/quotas/{tenant}", "getQuota", "A tenant's quota", "Quotas");
    one.answers = {{200, "The quota", quotaSchema(), {}}};
    one.problems = {ErrorCode::NotFound};
    one.handle = [&services](Call& call) {
        return jsonResponse(quotaViewJson(services.quotas.get(call.who, tenantOf(call))));
    };
    all.push_back(std::move(one));

    Operation put("PUT", "/v1/quotas/{tenant}", "putQuota", "Set a tenant's quota", "Quotas");
    put.description =
        "What is left out is not limited. Below what is used: 422 with a field for each. A quota "
        "of the configuration file is changed there: 409.";
    put.role = Role::Admin;
    put.body_kind = Body::Json;
    put.body = quotaFields().named("QuotaRequest");
    put.answers = {{200, "In force, and on disk", quotaSchema(), {}}};
    put.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::InvalidSpec};
    put.handle = [&services](Call& call) {
        std::vector<FieldError> wrong;
        const Fields::Wrong tell = [&](FieldError error) { wrong.push_back(std::move(error)); };
        Fields fields(call.body, "", tell, Fields::Absent::Fine);
        const controller::TenantQuota quota = controller::readQuota(fields);
        if (!wrong.empty()) {
            Error error(ErrorCode::InvalidSpec,
                        "the quota is not valid: " + wrong[0].pointer + " " + wrong[0].reason);
            for (FieldError& each : wrong) error.field(each.pointer, each.reason);
            throw Error(error);
        }
        return jsonResponse(quotaViewJson(services.quotas.put(call.who, tenantOf(call), quota)));
    };
    all.push_back(std::move(put));

    Operation remove("DELETE", "/v1/quotas/{tenant}", "deleteQuota", "Remove a tenant's quota",
                     "Quotas");
    remove.description = "From then on the quota of \"*\" bounds the tenant, if there is one.";
    remove.role = Role::Admin;
    remove.answers = {{204, "Removed", {}, {}}};
    remove.problems = {ErrorCode::NotFound, ErrorCode::Conflict};
    remove.handle = [&services](Call& call) {
        services.quotas.remove(call.who, tenantOf(call));
        return emptyResponse();
    };
    all.push_back(std::move(remove));
    return all;
}

}  // namespace hearth::rest
