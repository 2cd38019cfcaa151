#include "api/kubernetes/PoolObject.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/kubernetes/DefinitionCheck.h"
#include "api/rest/model/Answers.h"
#include "controller/spec/PoolSpec.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::kubernetes {
namespace {

/// The status fields that REST has, too.
constexpr std::array kCounts{"ready",  "claimed", "creating", "draining",
                             "failed", "desired", "waiting"};

/// Sets Ready to false for a refused object, whatever the earlier pool does.
void refuse(Json& conditions, const Refusal& refusal, const std::string& now) {
    const auto is_ready = [](const Json& each) { return each.value("type", "") == "Ready"; };
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_ready),
                     conditions.end());
    conditions.insert(conditions.begin(), condition("Ready", false, refusal, now));
}

}  // namespace

Json manifestOf(const Json& object) {
    Json manifest = Json::object();
    for (const char* key : {"apiVersion", "kind", "spec"}) {
        if (object.contains(key)) manifest[key] = object[key];
    }
    manifest["metadata"] = {{"name", pool::kubernetes::valueAt(object, "/metadata/name")}};
    return manifest;
}

Json poolStatusOf(const Json& object, const std::optional<controller::PoolView>& view,
                  const std::optional<Refusal>& refusal, const std::string& now,
                  const std::string& definition_trouble) {
    const Json pool = view ? rest::jsonOf(*view)["status"] : Json::object();
    Json status = Json::object();
    for (const char* count : kCounts) status[count] = pool.value(count, 0);
    status["replicas"] = status["ready"];
    status["selector"] =
        "hearth.dev/pool=" + pool::kubernetes::valueAt(object, "/metadata/name").get<std::string>();
    if (pool.contains("schedule")) status["schedule"] = pool["schedule"];
    Json conditions = pool.value("conditions", Json::array());
    if (refusal) refuse(conditions, *refusal, now);
    const bool stalled = refusal && refusal->wrong;
    conditions.push_back(condition(
        "Stalled", stalled, stalled ? *refusal : Refusal{"Accepted", "the spec is valid"}, now));
    const bool outdated = !definition_trouble.empty();
    conditions.push_back(condition(
        "DefinitionOutdated", outdated,
        outdated ? Refusal{"OlderDefinition", definition_trouble + " (" + kDefinitionFix + ")"}
                 : Refusal{"Current", "the cluster has the definitions of this server, or newer"},
        now));
    completeConditions(conditions, object, now);
    status["conditions"] = std::move(conditions);
    // Until the reconciler has looked at the pool with this spec, its status is about the old spec.
    const bool looked =
        refusal || (view && view->status.observed_generation >= view->pool->generation);
    const Json& before = pool::kubernetes::valueAt(object, "/status/observedGeneration");
    status["observedGeneration"] = looked                       ? Json(generationOf(object))
                                   : before.is_number_integer() ? before
                                                                : Json(0);
    return status;
}

bool tellsMore(const Json& before, const Json& now) {
    for (const char* key : {"conditions", "observedGeneration", "schedule"}) {
        if (before.value(key, Json()) != now.value(key, Json())) return true;
    }
    return false;
}

}  // namespace hearth::kubernetes
