#include "api/kubernetes/ObjectStatus.h"

#include <algorithm>

#include "controller/spec/PoolSpec.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::kubernetes {

namespace {

/// The longest message, in bytes. The API server takes more, but people do not read more.
constexpr std::size_t kLongestMessage = 1000;

/// True for conditions that are bad news when they hold.
bool isBadNews(std::string_view type) {
    return type == "Stalled" || type == "Degraded" || type == "ScalingLimited" ||
           type == "DefinitionOutdated";
}

std::string wordsOf(const Error& error) {
    std::string words = error.what();
    // what() has the first field already.
    for (std::size_t i = 1; i < error.fields().size(); ++i) {
        words.append("; ").append(error.fields()[i].pointer).append(" ");
        words.append(error.fields()[i].reason);
    }
    if (!error.hint().empty()) words.append(" (").append(error.hint()).append(")");
    return words;
}

}  // namespace

Refusal refusalOf(const Error& error, const char* busy) {
    if (error.code() == ErrorCode::InvalidSpec || error.code() == ErrorCode::InvalidArgument) {
        return {"InvalidSpec", wordsOf(error), true};
    }
    return {error.code() == ErrorCode::Conflict ? busy : "Failed", wordsOf(error)};
}

std::int64_t generationOf(const Json& object) {
    const Json& generation = pool::kubernetes::valueAt(object, "/metadata/generation");
    return generation.is_number_integer() ? generation.get<std::int64_t>() : 0;
}

const Json* conditionOf(const Json& status, std::string_view type) {
    const Json& all = pool::kubernetes::valueAt(status, "/conditions");
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

void completeConditions(Json& conditions, const Json& object, const std::string& now) {
    for (Json& each : conditions) {
        each["observedGeneration"] = generationOf(object);
        // Some API servers (Debian's 1.20) refuse an empty text.
        if (each.value("message", "").empty()) each["message"] = each.value("reason", "");
        const Json* before =
            conditionOf(pool::kubernetes::valueAt(object, "/status"), each.value("type", ""));
        if (before != nullptr && before->value("status", "") == each.value("status", "")) {
            each["lastTransitionTime"] = before->value("lastTransitionTime", now);
        } else if (!each["lastTransitionTime"].is_string()) {
            each["lastTransitionTime"] = now;
        }
    }
}

Json statusPatch(const Json& object, const Json& status) {
    Json changed = status;
    const Json& before = pool::kubernetes::valueAt(object, "/status");
    if (before.is_object()) {
        for (const auto& [key, value] : before.items()) {
            if (!changed.contains(key)) changed[key] = nullptr;
        }
    }
    // If the uid differs, the name belongs to another object and the API server refuses the patch.
    return {{"metadata", {{"uid", pool::kubernetes::valueAt(object, "/metadata/uid")}}},
            {"status", std::move(changed)}};
}

Json eventAbout(const Json& object, bool warning, const Refusal& why, const std::string& time) {
    const std::string name = pool::kubernetes::valueAt(object, "/metadata/name").get<std::string>();
    const Json& ns = pool::kubernetes::valueAt(object, "/metadata/namespace");
    return {{"apiVersion", "v1"},
            {"kind", "Event"},
            {"metadata", {{"generateName", name + "."}, {"namespace", ns}}},
            {"involvedObject",
             {{"apiVersion", controller::kPoolApiVersion},
              {"kind", pool::kubernetes::valueAt(object, "/kind")},
              {"name", name},
              {"namespace", ns},
              {"uid", pool::kubernetes::valueAt(object, "/metadata/uid")}}},
            {"type", warning ? "Warning" : "Normal"},
            {"reason", why.reason},
            {"message", why.message.substr(0, kLongestMessage)},
            {"source", {{"component", "hearth"}}},
            {"firstTimestamp", time},
            {"lastTimestamp", time},
            {"count", 1}};
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
        const std::string words =
            type + " is " + (holds ? "true" : "false") + ": " + each.value("message", "");
        events.push_back(eventAbout(object, holds == isBadNews(type),
                                    {each.value("reason", type), words}, time));
    }
    return events;
}

}  // namespace hearth::kubernetes
