#include "api/kubernetes/PoolObject.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/rest/model/Views.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::kubernetes {
namespace {

constexpr const char* kStalled = "Stalled";
/// The API server takes more, but nobody reads it.
constexpr std::size_t kLongestMessage = 1000;
/// The fields of the status that REST has, too.
constexpr std::array kCounts{"ready",  "claimed", "creating", "draining",
                             "failed", "desired", "waiting"};

const Json& at(const Json& object, const char* pointer) {
    static const Json none;
    const Json::json_pointer where(pointer);
    return object.contains(where) ? object[where] : none;
}

/// Null if there is none.
const Json* conditionOf(const Json& status, std::string_view type) {
    const Json& all = at(status, "/conditions");
    if (!all.is_array()) return nullptr;
    const auto found =
        std::ranges::find_if(all, [&](const Json& each) { return each.value("type", "") == type; });
    return found == all.end() ? nullptr : &*found;
}

Json condition(std::string_view type, bool holds, const Refusal& why, const std::string& now) {
    return {{"type", type},
            {"status", holds ? "True" : "False"},
            {"reason", why.reason},
            {"message", why.message.substr(0, kLongestMessage)},
            {"lastTransitionTime", now}};
}

/// Of a refused object: Ready is false, whatever the pool of before does.
void refuse(Json& conditions, const Refusal& refusal, const std::string& now) {
    const auto is_ready = [](const Json& each) { return each.value("type", "") == "Ready"; };
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_ready),
                     conditions.end());
    conditions.insert(conditions.begin(), condition("Ready", false, refusal, now));
}

/// Fills in what the API conventions ask of each.
void complete(Json& conditions, const Json& object, const std::string& now) {
    for (Json& each : conditions) {
        each["observedGeneration"] = generationOf(object);
        // Some API servers (Debian's 1.20) refuse an empty text.
        if (each.value("message", "").empty()) each["message"] = each.value("reason", "");
        const Json* before = conditionOf(at(object, "/status"), each.value("type", ""));
        if (before != nullptr && before->value("status", "") == each.value("status", "")) {
            each["lastTransitionTime"] = before->value("lastTransitionTime", now);
        } else if (!each["lastTransitionTime"].is_string()) {
            each["lastTransitionTime"] = now;
        }
    }
}

/// True for conditions that are bad news when they hold.
bool isBadNews(std::string_view type) {
    return type == kStalled || type == "Degraded";
}

}  // namespace

Json manifestOf(const Json& object) {
    Json manifest = Json::object();
    for (const char* key : {"apiVersion", "kind", "spec"}) {
        if (object.contains(key)) manifest[key] = object[key];
    }
    manifest["metadata"] = {{"name", at(object, "/metadata/name")}};
    return manifest;
}

std::int64_t generationOf(const Json& object) {
    const Json& generation = at(object, "/metadata/generation");
    return generation.is_number_integer() ? generation.get<std::int64_t>() : 0;
}

Json statusOf(const Json& object, const std::optional<controller::PoolView>& view,
              const std::optional<Refusal>& refusal, const std::string& now) {
    const Json pool = view ? rest::poolJson(*view)["status"] : Json::object();
    Json status = Json::object();
    for (const char* count : kCounts) status[count] = pool.value(count, 0);
    status["replicas"] = status["ready"];
    status["selector"] = "hearth.dev/pool=" + at(object, "/metadata/name").get<std::string>();
    if (pool.contains("schedule")) status["schedule"] = pool["schedule"];
    Json conditions = pool.value("conditions", Json::array());
    if (refusal) refuse(conditions, *refusal, now);
    const bool stalled = refusal && refusal->wrong;
    conditions.push_back(condition(
        kStalled, stalled, stalled ? *refusal : Refusal{"Accepted", "the spec is valid"}, now));
    complete(conditions, object, now);
    status["conditions"] = std::move(conditions);
    // Until the pool was looked at with this spec, what is told of it is about the one before.
    const bool looked =
        refusal || (view && view->status.observed_generation >= view->pool->generation);
    const Json& before = at(object, "/status/observedGeneration");
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

Json statusPatch(const Json& object, const Json& status) {
    Json changed = status;
    const Json& before = at(object, "/status");
    if (before.is_object()) {
        for (const auto& [key, value] : before.items()) {
            if (!changed.contains(key)) changed[key] = nullptr;
        }
    }
    // With another uid it is another object of that name: the API server then refuses.
    return {{"metadata", {{"uid", at(object, "/metadata/uid")}}}, {"status", std::move(changed)}};
}

std::vector<Json> eventsOf(const Json& object, const Json& before, const Json& now,
                           const std::string& time) {
    std::vector<Json> events;
    for (const Json& each : now.value("conditions", Json::array())) {
        const std::string type = each.value("type", "");
        const Json* old = conditionOf(before, type);
        const bool holds = each.value("status", "") == "True";
        if (type == "Ready" || type == "Progressing") continue;
        if (old == nullptr && holds != isBadNews(type)) continue;  // nothing was ever wrong
        if (old != nullptr && old->value("status", "") == each.value("status", "") &&
            old->value("reason", "") == each.value("reason", "")) {
            continue;
        }
        const std::string name = at(object, "/metadata/name").get<std::string>();
        const Json& ns = at(object, "/metadata/namespace");
        events.push_back({{"apiVersion", "v1"},
                          {"kind", "Event"},
                          {"metadata", {{"generateName", name + "."}, {"namespace", ns}}},
                          {"involvedObject",
                           {{"apiVersion", controller::kPoolApiVersion},
                            {"kind", controller::kPoolKind},
                            {"name", name},
                            {"namespace", ns},
                            {"uid", at(object, "/metadata/uid")}}},
                          {"type", holds == isBadNews(type) ? "Warning" : "Normal"},
                          {"reason", each.value("reason", type)},
                          {"message", type + " is " + (holds ? "true" : "false") + ": " +
                                          each.value("message", "").substr(0, kLongestMessage)},
                          {"source", {{"component", "hearth"}}},
                          {"firstTimestamp", time},
                          {"lastTimestamp", time},
                          {"count", 1}});
    }
    return events;
}

}  // namespace hearth::kubernetes
