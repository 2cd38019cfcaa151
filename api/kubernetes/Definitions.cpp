#include "api/kubernetes/Definitions.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/rest/model/PoolSpecShape.h"
#include "api/rest/model/Requests.h"
#include "base/Digest.h"
#include "base/Version.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::kubernetes {
namespace {

constexpr std::string_view kReference = "#/components/schemas/";
constexpr const char* kAnything = "x-kubernetes-preserve-unknown-fields";

/// True for sizes and durations; a manifest may give them as numbers: memory: 536870912, maxAge: 0.
bool takesNumber(std::string_view field) {
    constexpr std::array kFields{"memory",         "workspace",  "tmp",         "timeout",
                                 "maxAge",         "maxWait",    "idleTimeout", "maxLifetime",
                                 "silenceTimeout", "warnBefore", "duration"};
    return std::ranges::find(kFields, field) != kFields.end();
}

/// Turns a schema of OpenAPI 3.1 into a structural one: without references, and pruning instead of
/// refusing. https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources has the rules.
Json structural(const Json& schema, const Json& components) {
    if (schema.contains("$ref")) {
        const auto name = schema["$ref"].get<std::string>().substr(kReference.size());
        return structural(components.at(name), components);
    }
    Json out = Json::object();
    for (const char* key : {"type", "description", "enum", "required", "minLength", "maxLength",
                            "minimum", "maximum", "minItems", "maxItems"}) {
        if (schema.contains(key)) out[key] = schema[key];
    }
    // Some API servers (Debian's 1.20) take an empty text for null; null means absent here.
    if (schema.value("type", "") == "string" && !schema.contains("enum")) out["nullable"] = true;
    if (schema.contains("items")) out["items"] = structural(schema["items"], components);
    if (schema.value("type", "") != "object") return out;
    const Json rest = schema.value("additionalProperties", Json(true));
    if (rest == Json(true)) out[kAnything] = true;
    if (rest.is_object()) out["additionalProperties"] = structural(rest, components);
    const Json fields = schema.value("properties", Json::object());
    for (const auto& [name, field] : fields.items()) {
        Json& property = out["properties"][name] = structural(field, components);
        const Json described = property.value("description", Json());
        if (name == "cpu")
            property = {{kAnything, true},
                        {"nullable", true}};  // 0.5 is neither a text nor an integer
        if (takesNumber(name))
            property = {{"x-kubernetes-int-or-string", true}, {"nullable", true}};
        if (!property.contains("description") && described.is_string()) {
            property["description"] = described;
        }
    }
    return out;
}

Json poolSpecSchema() {
    Json components = Json::object();
    const Json shape = rest::poolSpecSchema().toOpenApi(components);
    Json spec = structural(shape, components);
    spec["required"] = Json::array({"template"});
    spec["properties"]["template"]["required"] = Json::array({"image"});
    // `kubectl scale` and autoscalers refuse an object that does not have the field.
    spec["properties"]["warm"]["default"] = Json::object();
    spec["properties"]["warm"]["properties"]["min"]["default"] = controller::PoolSpec{}.warm_min;
    return spec;
}

Json typed(const char* type, const char* description) {
    return {{"type", type}, {"description", description}};
}

Json conditionsSchema() {
    const Json text{{"type", "string"}};
    const Json condition{{"type", "object"},
                         {"required", Json::array({"type", "status"})},
                         {"properties",
                          {{"type", text},
                           {"status", {{"type", "string"}, {"enum", {"True", "False", "Unknown"}}}},
                           {"reason", text},
                           {"message", text},
                           {"observedGeneration", {{"type", "integer"}}},
                           {"lastTransitionTime", text}}}};
    return {{"type", "array"},
            {"items", condition},
            {"x-kubernetes-list-type", "map"},
            {"x-kubernetes-list-map-keys", Json::array({"type"})}};
}

Json poolStatusSchema() {
    const Json number{{"type", "integer"}};
    const Json nullable{{"type", "string"}, {"nullable", true}};
    return {{"type", "object"},
            {"description", "What became of it. The server writes this, and nobody else"},
            {"properties",
             {{"observedGeneration", typed("integer", "The spec that the conditions are about")},
              {"replicas", typed("integer", "Warm sandboxes that are ready, for autoscalers")},
              {"selector", typed("string", "The labels of its Pods, for autoscalers")},
              {"ready", typed("integer", "Warm sandboxes that are ready")},
              {"claimed", typed("integer", "Sandboxes with a workspace")},
              {"creating", typed("integer", "Sandboxes that are being made")},
              {"draining", typed("integer", "Sandboxes that are being ended")},
              {"failed", typed("integer", "Sandboxes that failed")},
              {"desired", typed("integer", "Warm sandboxes that there should be")},
              {"waiting", typed("integer", "Claims that stand in line")},
              {"schedule",
               {{"type", "object"},
                {"properties",
                 {{"entry", nullable},
                  {"min", number},
                  {"max", number},
                  {"since", nullable},
                  {"nextChange", nullable},
                  {"nextEntry", nullable}}}}},
              {"conditions", conditionsSchema()}}}};
}

Json column(const char* name, const char* type, const char* path, int priority = 0) {
    return {{"name", name}, {"type", type}, {"jsonPath", path}, {"priority", priority}};
}

Json poolColumns() {
    return {column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
            column("Warm", "integer", ".status.ready"),
            column("Desired", "integer", ".status.desired"),
            column("Claimed", "integer", ".status.claimed"),
            column("Waiting", "integer", ".status.waiting"),
            column("Age", "date", ".metadata.creationTimestamp"),
            column("Image", "string", ".spec.template.image", 1),
            column("Reason", "string", ".status.conditions[?(@.type==\"Ready\")].message", 1)};
}

Json workspaceSpecSchema() {
    Json components = Json::object();
    const Json shape = rest::workspaceRequestSchema().toOpenApi(components);
    Json spec = structural(shape, components);
    // These fields would be stored unencrypted and sent to every watcher.
    for (const char* field : {"secrets", "files", "credentials"}) spec["properties"].erase(field);
    spec["properties"]["tenant"] = {
        {"type", "string"}, {"description", "Whose it is; default: default"}, {"nullable", true}};
    return spec;
}

Json workspaceStatusSchema() {
    return {{"type", "object"},
            {"description", "What became of it. The server writes this, and nobody else"},
            {"properties",
             {{"observedGeneration", typed("integer", "The spec that the conditions are about")},
              {"phase", typed("string", "Pending, Active, Paused, Reclaiming or Gone")},
              {"workspace", typed("string", "The id of the workspace")},
              {"tenant", typed("string", "Whose it is")},
              {"pool", typed("string", "The pool that it came from")},
              {"sandbox", typed("string", "The id of its sandbox")},
              {"url", typed("string", "Where the server is reached")},
              {"secret", typed("string", "The Secret with url, workspace and token")},
              {"claimedAt", typed("string", "When it was claimed")},
              {"source", typed("string", "warm, queued or cold")},
              {"claimMicroseconds", typed("integer", "How long the claim took")},
              {"conditions", conditionsSchema()}}}};
}

Json workspaceColumns() {
    return {column("Phase", "string", ".status.phase"),
            column("Pool", "string", ".status.pool"),
            column("Workspace", "string", ".status.workspace"),
            column("Secret", "string", ".status.secret"),
            column("Age", "date", ".metadata.creationTimestamp"),
            column("Sandbox", "string", ".status.sandbox", 1),
            column("Reason", "string", ".status.conditions[?(@.type==\"Ready\")].message", 1)};
}

/// The names of a kind of objects.
struct Names {
    std::string kind;
    std::string plural;
    std::string short_name;
    std::string description;
};

Json definitionOf(const Names& names, Json subresources, Json columns, Json spec, Json status) {
    const Json version{{"name", kObjectVersion},
                       {"served", true},
                       {"storage", true},
                       {"subresources", std::move(subresources)},
                       {"additionalPrinterColumns", std::move(columns)},
                       {"schema",
                        {{"openAPIV3Schema",
                          {{"type", "object"},
                           {"description", names.description},
                           {"required", Json::array({"spec"})},
                           {"properties",
                            {{"apiVersion", {{"type", "string"}}},
                             {"kind", {{"type", "string"}}},
                             {"metadata", {{"type", "object"}}},
                             {"spec", std::move(spec)},
                             {"status", std::move(status)}}}}}}}};
    Json definition{{"apiVersion", "apiextensions.k8s.io/v1"},
                    {"kind", "CustomResourceDefinition"},
                    {"metadata", {{"name", names.plural + ".hearth.dev"}}},
                    {"spec",
                     {{"group", "hearth.dev"},
                      {"scope", "Namespaced"},
                      {"names",
                       {{"plural", names.plural},
                        {"singular", names.plural.substr(0, names.plural.size() - 1)},
                        {"kind", names.kind},
                        {"listKind", names.kind + "List"},
                        {"shortNames", Json::array({names.short_name})},
                        {"categories", Json::array({"hearth"})}}},
                      {"versions", Json::array({version})}}}};
    definition["spec"]["names"]["categories"].push_back(definitionMark(definition));
    return definition;
}

/// Removes descriptions, which are text for people: they do not change a cluster's behaviour.
void eraseDescriptions(Json& value) {
    if (value.is_object()) {
        const auto words = value.find("description");
        if (words != value.end() && words->is_string()) value.erase(words);
    }
    if (value.is_structured()) {
        for (Json& each : value) eraseDescriptions(each);
    }
}

}  // namespace

std::string definitionMark(const Json& definition) {
    constexpr std::size_t kDigits = 12;
    Json spec = definition.at("spec");
    spec["names"].erase("categories");
    eraseDescriptions(spec);
    std::string version = kHearthVersion;
    std::ranges::replace(version, '.', '-');
    return std::string(kMarkPrefix)
        .append(version)
        .append("-")
        .append(toHex(sha256(dumpJson(spec))).substr(0, kDigits));
}

Json sandboxPoolDefinition() {
    return definitionOf({controller::kPoolKind, "sandboxpools", "sp", "A pool of warm sandboxes"},
                        {{"status", Json::object()},
                         {"scale",
                          {{"specReplicasPath", ".spec.warm.min"},
                           {"statusReplicasPath", ".status.replicas"},
                           {"labelSelectorPath", ".status.selector"}}}},
                        poolColumns(), poolSpecSchema(), poolStatusSchema());
}

Json workspaceDefinition() {
    return definitionOf({"Workspace", "workspaces", "ws", "A claimed sandbox"},
                        {{"status", Json::object()}}, workspaceColumns(), workspaceSpecSchema(),
                        workspaceStatusSchema());
}

}  // namespace hearth::kubernetes
