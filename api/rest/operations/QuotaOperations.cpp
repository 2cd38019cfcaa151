#include "api/rest/model/Answers.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"

namespace hearth::rest {

using controller::QuotaView;
using controller::Role;
using controller::Services;

Operations quotaOperations(const Services& services) {
    Operations all;
    Operation own("GET", "/v1/quota", "getOwnQuota", "Your tenant's quota and use", "Quotas");
    own.answers = {{200, "The quota that holds for your tenant", schemaOf<QuotaView>()}};
    own.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.quotas.own(call.who)));
    };
    all.push_back(std::move(own));

    Operation list("GET", "/v1/quotas", "listQuotas", "Quotas and use of all tenants", "Quotas");
    list.role = Role::Operator;
    list.parameters = wholeListParameters();
    list.answers = {{200, "Tenants with a quota, or with something in use",
                     listSchema<QuotaView>("QuotaList")}};
    list.handle = [&services](Call& call) {
        const auto page = pageOf(call, services.quotas.list(call.who),
                                 [](const QuotaView& view) { return view.tenant; });
        return jsonResponse(listJson(jsonOf(page.items), page.next_cursor));
    };
    all.push_back(std::move(list));

    const std::string one = "/v1/quotas/{tenant}";
    Operation get("GET", one, "getQuota", "One tenant's quota and use", "Quotas");
    get.description = "Users read their own tenant's. `*` names the default quota.";
    get.answers = {{200, "The quota that holds for the tenant", schemaOf<QuotaView>()}};
    get.problems = {ErrorCode::Forbidden};
    get.handle = [&services](Call& call) {
        return jsonResponse(jsonOf(services.quotas.get(call.who, call.param("tenant"))));
    };
    all.push_back(std::move(get));

    Operation put("PUT", one, "putQuota", "Declare or replace a quota", "Quotas");
    put.description =
        "An absent field is not limited. 422 where the tenant holds more than the new limit, or "
        "pools have fewer sandboxes than are guaranteed; nothing changes then. 409 where the "
        "configuration declares it. `*` is the quota of every tenant without its own.";
    put.role = Role::Operator;
    put.body_kind = Body::Json;
    put.body = quotaLimitsSchema();
    put.answers = {{200, "Replaced", schemaOf<QuotaView>()},
                   {201, "Declared", schemaOf<QuotaView>()}};
    put.problems = {ErrorCode::Conflict, ErrorCode::InvalidSpec};
    put.handle = [&services](Call& call) {
        bool created = false;
        const QuotaView view =
            services.quotas.put(call.who, call.param("tenant"), call.body, created);
        return jsonResponse(jsonOf(view), created ? 201 : 200);
    };
    all.push_back(std::move(put));

    Operation remove("DELETE", one, "deleteQuota", "Remove a tenant's own quota", "Quotas");
    remove.description = "The default quota holds from then on; 422 where it is less than in use.";
    remove.role = Role::Operator;
    remove.answers = {{204, "Removed", {}, {}}};
    remove.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::InvalidSpec};
    remove.handle = [&services](Call& call) {
        services.quotas.remove(call.who, call.param("tenant"));
        return emptyResponse();
    };
    all.push_back(std::move(remove));
    return all;
}

}  // namespace hearth::rest
