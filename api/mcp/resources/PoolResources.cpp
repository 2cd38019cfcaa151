#include "api/mcp/resources/PoolResources.h"

#include <utility>

#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {
namespace {

constexpr std::string_view kPoolScheme = "pool://";
constexpr const char* kTemplate = "pool://{name}";

Json document(const controller::PoolView& view, const std::vector<std::string>& languages) {
    Json conditions = Json::array();
    for (const controller::PoolCondition& one : view.status.conditions) {
        conditions.push_back({{"type", controller::kConditionTypes.of(one.type)},
                              {"status", one.status},
                              {"reason", one.reason},
                              {"message", one.message},
                              {"since", one.since}});
    }
    return {{"name", view.pool->name},
            {"summary", poolFacts(view, languages)},
            {"image", view.pool->spec.image},
            {"languages", languages},
            {"packages", view.pool->spec.prewarm_packages},
            {"ready", view.status.ready},
            {"claimed", view.status.claimed},
            {"maxSandboxes", view.pool->spec.max_members},
            {"perTenant", view.pool->spec.per_tenant},
            {"deleting", view.pool->deleting},
            {"conditions", std::move(conditions)}};
}

}  // namespace

void PoolResources::list(const CallContext& context, Json& resources) const {
    for (const controller::PoolView& view : services_.pools.list(context.who)) {
        if (view.pool->deleting) continue;
        resources.push_back({{"uri", std::string(kPoolScheme) + view.pool->name},
                             {"name", "pool " + view.pool->name},
                             {"description", "Limits and state of pool " + view.pool->name + "."},
                             {"mimeType", "application/json"}});
    }
}

void PoolResources::templates(Json& templates) const {
    templates.push_back({{"uriTemplate", kTemplate},
                         {"name", "pool"},
                         {"description", "Languages, limits, packages and state of a pool."},
                         {"mimeType", "application/json"}});
}

std::optional<Json> PoolResources::read(const CallContext& context, const std::string& uri) const {
    if (!uri.starts_with(kPoolScheme)) return std::nullopt;
    const controller::PoolView view =
        services_.pools.get(context.who, uri.substr(kPoolScheme.size()));
    const Json json =
        document(view, imageLanguages(services_.capabilities(), view.pool->spec.image));
    return Json::array({textContents(uri, "application/json", json.dump(2))});
}

bool PoolResources::watchable(const CallContext& context, const std::string& uri) const {
    if (!uri.starts_with(kPoolScheme)) return false;
    services_.pools.get(context.who, uri.substr(kPoolScheme.size()));  // throws if there is none
    return true;
}

std::optional<std::vector<std::string>> PoolResources::complete(const CallContext& context,
                                                                const std::string& uri_template,
                                                                const Typed&) const {
    if (uri_template != kTemplate) return std::nullopt;
    std::vector<std::string> names;
    for (const controller::PoolView& view : services_.pools.list(context.who)) {
        if (!view.pool->deleting) names.push_back(view.pool->name);
    }
    return names;
}

}  // namespace hearth::mcp
