#include "api/rest/docs/OpenApi.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/rest/model/Answers.h"
#include "api/rest/model/Examples.h"
#include "base/Version.h"
#include "base/http/RequestHead.h"

namespace hearth::rest {
namespace {

constexpr const char* kProblemMedia = "application/problem+json";
constexpr const char* kBearer = "bearer";

/// "/files/{path...}" is "/files/{path}" in OpenAPI, which cannot express the rest of a path.
std::string openApiPath(std::string pattern) {
    const std::size_t dots = pattern.find("...}");
    if (dots != std::string::npos) pattern.erase(dots, 3);
    return pattern;
}

/// A path parameter: its sample in this document's examples, and its greatest length.
struct PathParameter {
    std::string example;
    std::size_t longest = 35;  // length of an id
};

PathParameter pathParameter(const std::string& name) {
    static const std::map<std::string, PathParameter> parameters = {
        {"workspace", {kExampleWorkspace}},
        {"execution", {kExampleExecution}},
        {"context", {kExampleContext}},
        {"sandbox", {kExampleSandbox}},
        {"token", {kExampleToken}},
        {"pool", {kExamplePool, kPoolName.longest}},
        {"tenant", {"shop", kTenant.longest}},
        {"uuid", {"GPU-0f3c2a9e-1111-2222-3333-444455556666", 64}},
        {"path", {"out/plot.png", kPath.longest}},
        {"name", {"plot.png", kPath.longest}}};
    const auto at = parameters.find(name);
    return at == parameters.end() ? PathParameter{} : at->second;
}

Json pathParameters(const std::string& pattern) {
    Json parameters = Json::array();
    std::size_t at = 0;
    while ((at = pattern.find('{', at)) != std::string::npos) {
        const std::size_t end = pattern.find('}', at);
        std::string name = pattern.substr(at + 1, end - at - 1);
        const bool rest = name.ends_with("...");
        if (rest) name.resize(name.size() - 3);
        Json parameter = {{"name", name}, {"in", "path"}, {"required", true}};
        if (rest) parameter["description"] = "May hold slashes; each segment is percent-encoded";
        const PathParameter known = pathParameter(name);
        const bool link = pattern.starts_with("/v1/links/") && name == "token";
        parameter["schema"] = {{"type", "string"},
                               {"maxLength", link ? HeadLimits{}.line : known.longest}};
        if (!link && !known.example.empty()) parameter["example"] = known.example;
        parameters.push_back(std::move(parameter));
        at = end;
    }
    return parameters;
}

Json parameterJson(const Parameter& parameter, Json& components) {
    return {{"name", parameter.name},
            {"in", parameter.in == Parameter::In::Query ? "query" : "header"},
            {"required", false},
            {"description", parameter.description},
            {"schema", parameter.schema.toOpenApi(components)}};
}

/// Examples of a request's body by name: those of its schema, or one made from the schema.
Json requestExamples(const Operation& operation) {
    Json examples = Json::object();
    for (const Json& value : operation.body.examples()) {
        examples["example" + std::to_string(examples.size() + 1)] = {{"value", value}};
    }
    if (examples.empty()) examples["example1"] = {{"value", operation.body.sample(false)}};
    return examples;
}

/// Any bytes, in the form that generators know.
Json bytesShape() {
    return {{"type", "string"}, {"format", "binary"}};
}

Json requestBody(const Operation& operation, Json& components) {
    if (operation.body_kind == Body::Raw) {
        // A tar is no text: an example of it would be wrong.
        const bool tar = operation.pattern.ends_with("/archive");
        Json content = Json::object();
        if (tar) content["application/x-tar"]["schema"] = bytesShape();
        Json& bytes = content["application/octet-stream"];
        bytes["schema"] = bytesShape();
        if (!tar) bytes["example"] = "some bytes";
        return {{"required", false}, {"content", std::move(content)}};
    }
    Json content = Json::object();
    const Json schema = operation.body.toOpenApi(components);
    content["application/json"] = {{"schema", schema}, {"examples", requestExamples(operation)}};
    Json body = {{"required", operation.body_kind == Body::Json}, {"content", std::move(content)}};
    // A second content type with the same schema makes some generators write clients that fail.
    if (operation.method == "PATCH") {
        body["description"] = "A JSON merge patch; application/merge-patch+json is accepted, too";
    }
    return body;
}

/// To HTTP a stream is text; each of its events, once parsed, is one of `events`.
Json streamShape(const EventShapes& events, Json& components) {
    Json choices = Json::array();
    for (const Schema& event : events.events) choices.push_back(event.toOpenApi(components));
    const Json one = {{"$ref", "#/components/schemas/" + events.name}};
    if (!components.contains(events.name)) {
        Json mapping = Json::object();
        for (const Json& choice : choices) {
            const auto& reference = choice.at("$ref").get_ref<const std::string&>();
            const Json& shape = components.at(reference.substr(reference.rfind('/') + 1));
            mapping[shape.at("properties").at("event").at("enum").at(0)] = reference;
        }
        components[events.name] = {
            {"description", "One event of the stream"},
            {"oneOf", std::move(choices)},
            {"discriminator", {{"propertyName", "event"}, {"mapping", std::move(mapping)}}}};
    }
    return {{"type", "string"}, {"contentMediaType", "text/event-stream"}, {"contentSchema", one}};
}

Json problemReference() {
    return {{"$ref", "#/components/schemas/Problem"}};
}

bool takes(const Operation& operation, std::string_view header) {
    return std::any_of(operation.parameters.begin(), operation.parameters.end(),
                       [&](const Parameter& parameter) { return parameter.name == header; });
}

void addAnswers(const Operation& operation, Json& responses, Json& components) {
    for (const Answer& answer : operation.answers) {
        Json& response = responses[std::to_string(answer.status)];
        if (!response.contains("description")) response["description"] = answer.description;
        if (answer.schema) {
            Json& media = response["content"]["application/json"];
            media["schema"] = answer.schema->toOpenApi(components);
            media["example"] =
                answer.example.is_null() ? answer.schema->sample(true) : answer.example;
        } else if (answer.media == kProblemMedia) {
            response["content"][kProblemMedia]["schema"] = problemReference();
        } else if (!answer.events.events.empty()) {
            response["content"][answer.media]["schema"] = streamShape(answer.events, components);
        } else if (answer.media.starts_with("text/")) {
            response["content"][answer.media]["schema"] = {{"type", "string"}};
        } else if (!answer.media.empty()) {
            const bool json = answer.media == "application/json";
            response["content"][answer.media]["schema"] =
                json ? Json{{"type", "object"}} : bytesShape();
        }
        if (takes(operation, "Prefer")) {
            response["headers"]["Preference-Applied"] = {
                {"description", "The wait that was honoured"}, {"schema", {{"type", "string"}}}};
        }
        if (answer.status == 201 || answer.status == 202) {
            response["headers"]["Location"] = {{"schema", {{"type", "string"}}}};
        }
        if (operation.idempotent) {
            response["headers"]["Idempotency-Replayed"] = {
                {"description", "true: this is the answer of an earlier request"},
                {"schema", {{"type", "string"}}}};
        }
    }
}

void addProblems(const Operation& operation, Json& responses) {
    std::map<int, std::set<std::string>> by_status;
    const auto add = [&by_status](ErrorCode code) {
        by_status[errorCodeStatus(code)].insert(std::string(errorCodeName(code)));
    };
    for (const ErrorCode code : operation.problems) add(code);
    if (!operation.open) {
        add(ErrorCode::InvalidArgument);
        add(ErrorCode::Unauthenticated);
        add(ErrorCode::RateLimited);
    }
    add(ErrorCode::Forbidden);  // a foreign Host or Origin, or too low a role
    if (operation.body_kind != Body::None) add(ErrorCode::PayloadTooLarge);
    add(ErrorCode::Internal);
    add(ErrorCode::Unavailable);
    if (operation.method != "GET" && operation.method != "HEAD") add(ErrorCode::DiskFull);
    for (const auto& [status, names] : by_status) {
        std::string text;
        for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
        Json& response = responses[std::to_string(status)] = {
            {"description", text},
            {"content", {{kProblemMedia, {{"schema", problemReference()}}}}}};
        if (status == 429 || status == 503) {
            response["headers"]["Retry-After"] = {{"description", "Seconds"},
                                                  {"schema", {{"type", "integer"}}}};
        }
    }
}

Json operationJson(const Operation& operation, Json& components) {
    Json out = {{"operationId", operation.id},
                {"tags", Json::array({operation.tag})},
                {"summary", operation.summary}};
    std::string description = operation.description;
    if (operation.role != controller::Role::User) {
        if (!description.empty()) description += " ";
        description += std::string("Needs the role ") + controller::kRoles.of(operation.role) + ".";
    }
    if (!description.empty()) out["description"] = description;
    Json parameters = pathParameters(operation.pattern);
    for (const Parameter& parameter : operation.parameters) {
        parameters.push_back(parameterJson(parameter, components));
    }
    if (!parameters.empty()) out["parameters"] = std::move(parameters);
    if (operation.body_kind != Body::None) {
        out["requestBody"] = requestBody(operation, components);
    }
    Json responses = Json::object();
    addAnswers(operation, responses, components);
    addProblems(operation, responses);
    out["responses"] = std::move(responses);
    if (!operation.open) out["security"] = Json::array({Json{{kBearer, Json::array()}}});
    return out;
}

}  // namespace

Json openApiDocument(const Operations& operations) {
    Json components = Json::object();
    Json paths = Json::object();
    Json tags = Json::array();
    std::set<std::string> seen;
    problemSchema().toOpenApi(components);
    for (const Operation& operation : operations) {
        if (operation.hidden) continue;
        std::string method = operation.method;
        for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
        paths[openApiPath(operation.pattern)][method] = operationJson(operation, components);
        if (seen.insert(operation.tag).second) tags.push_back({{"name", operation.tag}});
    }
    Json document = Json::object();
    document["openapi"] = "3.1.0";
    document["info"] = {
        {"title", "Hearth"},
        {"version", kHearthVersion},
        {"description",
         "Warm pools of containers; an isolated workspace for each request. Times are RFC 3339, "
         "durations end in Seconds or Ms, sizes are bytes. Unknown fields are refused and named. "
         "Send a token as \"Authorization: Bearer TOKEN\"; an operator makes one with hearth token "
         "create. Without configured tokens, loopback callers are admin of the tenant "
         "\"default\". The same workspaces and runs are available as tools over MCP: POST /mcp "
         "(Streamable HTTP) or GET /sse, with the same token; hearth mcp-config writes the entry "
         "for a client. GET / names the other entry points."}};
    document["servers"] = Json::array({Json{{"url", "/"}}});
    document["tags"] = std::move(tags);
    document["paths"] = std::move(paths);
    document["components"] = {
        {"schemas", std::move(components)},
        {"securitySchemes", {{kBearer, {{"type", "http"}, {"scheme", "bearer"}}}}}};
    return document;
}

Json withoutCredentials(Json document) {
    for (Json& path : document["paths"]) {
        for (Json& operation : path) operation.erase("security");
    }
    document["components"].erase("securitySchemes");
    return document;
}

}  // namespace hearth::rest
