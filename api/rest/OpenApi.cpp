#include "api/rest/OpenApi.h"

#include <map>
#include <set>

#include "api/rest/Answers.h"
#include "api/rest/Views.h"

namespace hearth::rest {
namespace {

/// "/files/{path...}" is "/files/{path}" in OpenAPI, which has no word for the rest of a path.
std::string openApiPath(std::string pattern) {
    const std::size_t dots = pattern.find("...}");
    if (dots != std::string::npos) pattern.erase(dots, 3);
    return pattern;
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
        parameter["schema"] = {{"type", "string"}};
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

Json requestBody(const Operation& operation, Json& components) {
    if (operation.body_kind == Body::Raw) {
        return {{"required", false}, {"content", {{"application/octet-stream", Json::object()}}}};
    }
    Json content = Json::object();
    const Json schema = operation.body.toOpenApi(components);
    content["application/json"]["schema"] = schema;
    if (operation.method == "PATCH") content["application/merge-patch+json"]["schema"] = schema;
    return {{"required", operation.body_kind == Body::Json}, {"content", std::move(content)}};
}

void addAnswers(const Operation& operation, Json& responses, Json& components) {
    for (const Answer& answer : operation.answers) {
        Json& response = responses[std::to_string(answer.status)];
        if (!response.contains("description")) response["description"] = answer.description;
        if (answer.schema) {
            response["content"]["application/json"]["schema"] =
                answer.schema->toOpenApi(components);
        } else if (!answer.media.empty()) {
            response["content"][answer.media]["schema"] = {{"type", "string"}};
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
    if (operation.role != controller::Role::User) add(ErrorCode::Forbidden);
    if (operation.body_kind != Body::None) add(ErrorCode::PayloadTooLarge);
    add(ErrorCode::Internal);
    add(ErrorCode::Unavailable);
    for (const auto& [status, names] : by_status) {
        std::string text;
        for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
        responses[std::to_string(status)] = {
            {"description", text},
            {"content",
             {{"application/problem+json",
               {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
    }
}

Json operationJson(const Operation& operation, Json& components) {
    Json out = {{"operationId", operation.id},
                {"tags", Json::array({operation.tag})},
                {"summary", operation.summary}};
    std::string description = operation.description;
    if (operation.role != controller::Role::User) {
        if (!description.empty()) description += " ";
        description += "Needs the role " + roleName(operation.role) + ".";
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
    if (operation.open) out["security"] = Json::array();
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
        {"version", HEARTH_VERSION},
        {"description",
         "Warm pools of containers; an isolated workspace for each request. Times are RFC 3339, "
         "durations end in Seconds or Ms, sizes are bytes. Unknown fields are refused and named. "
         "Without configured tokens, loopback callers are admin of the tenant \"default\"."}};
    document["servers"] = Json::array({Json{{"url", "/"}}});
    document["security"] = Json::array({Json{{"bearer", Json::array()}}});
    document["tags"] = std::move(tags);
    document["paths"] = std::move(paths);
    document["components"] = {
        {"schemas", std::move(components)},
        {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}}};
    return document;
}

}  // namespace hearth::rest
