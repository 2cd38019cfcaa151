#include <catch2/catch.hpp>

#include "api/rest/docs/DocsPage.h"
#include "api/rest/docs/OpenApi.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

void collectReferences(const Json& value, std::set<std::string>& out) {
    if (value.is_object()) {
        for (const auto& [key, member] : value.items()) {
            if (key == "$ref") out.insert(member.get<std::string>());
            collectReferences(member, out);
        }
    } else if (value.is_array()) {
        for (const Json& item : value) collectReferences(item, out);
    }
}

/// Collects the places of request strings that have no maximum length.
void collectUnbounded(const Json& schema, const Json& schemas, const std::string& at,
                      std::set<std::string>& seen, std::set<std::string>& out) {
    if (const auto reference = schema.find("$ref"); reference != schema.end()) {
        const std::string name = reference->get<std::string>().substr(21);
        if (seen.insert(name).second) collectUnbounded(schemas.at(name), schemas, name, seen, out);
        return;
    }
    const Json type = schema.value("type", Json());
    const bool text = type == "string" || (type.is_array() && type.at(0) == "string");
    if (text && !schema.contains("enum") && !schema.contains("maxLength")) out.insert(at);
    for (const char* part : {"items", "additionalProperties"}) {
        if (schema.contains(part) && schema.at(part).is_object()) {
            collectUnbounded(schema.at(part), schemas, at + "/*", seen, out);
        }
    }
    if (schema.contains("propertyNames") && !schema.at("propertyNames").contains("maxLength")) {
        out.insert(at + "/(name)");
    }
    if (!schema.contains("properties")) return;
    for (const auto& [name, property] : schema.at("properties").items()) {
        collectUnbounded(property, schemas, at + "/" + name, seen, out);
    }
}

const Json& pathOf(const Json& document, const char* path, const char* method) {
    return document.at("paths").at(path).at(method);
}

}  // namespace

TEST_CASE("each text of a request has a greatest length", "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json& schemas = document.at("components").at("schemas");
    std::set<std::string> seen;
    std::set<std::string> unbounded;
    for (const auto& [path, methods] : document.at("paths").items()) {
        for (const auto& [method, shape] : methods.items()) {
            const std::string id = shape.at("operationId").get<std::string>();
            for (const Json& parameter : shape.value("parameters", Json::array())) {
                const std::string at = id + " " + parameter.at("name").get<std::string>();
                collectUnbounded(parameter.at("schema"), schemas, at, seen, unbounded);
            }
            if (!shape.contains("requestBody")) continue;
            const Json& content = shape.at("requestBody").at("content");
            if (!content.contains("application/json")) continue;
            collectUnbounded(content.at("application/json").at("schema"), schemas, id, seen,
                             unbounded);
        }
    }
    CHECK(seen.contains("InlineFile"));
    CHECK(unbounded == std::set<std::string>{});
}

TEST_CASE("an operation documents the refusals that its headers bring", "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json problem = {{"$ref", "#/components/schemas/Problem"}};
    const auto shown = [&](const char* path, const char* method, const char* status) {
        return pathOf(document, path, method)
            .at("responses")
            .at(status)
            .at("content")
            .at("application/problem+json")
            .at("schema");
    };
    const char* file = "/v1/workspaces/{workspace}/files/{path}";
    CHECK(shown(file, "get", "416") == problem);
    CHECK(shown(file, "put", "415") == problem);
    CHECK(shown("/v1/links/{token}/{name}", "get", "416") == problem);
    CHECK(shown("/v1/workspaces/{workspace}/archive", "put", "415") == problem);
    CHECK(shown("/v1/pools/{pool}", "put", "404") == problem);
    CHECK(shown("/v1/workspaces", "post", "410") == problem);
}

TEST_CASE("client generators get one type for each body, and bytes for binary bodies",
          "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json& schemas = document.at("components").at("schemas");
    for (const char* name : {"ExecutionRequest", "OneShotRequest", "InlineFile", "Credential"}) {
        INFO(name);
        CHECK_FALSE(schemas.at(name).contains("oneOf"));
        CHECK(schemas.at(name).at("description").get<std::string>().find("Exactly one of `") !=
              std::string::npos);
    }
    for (const auto& [path, methods] : document.at("paths").items()) {
        for (const auto& [method, shape] : methods.items()) {
            INFO(method << " " << path);
            std::vector<Json> contents;
            if (shape.contains("requestBody")) {
                contents.push_back(shape.at("requestBody").at("content"));
            }
            for (const auto& [status, answer] : shape.at("responses").items()) {
                if (answer.contains("content")) contents.push_back(answer.at("content"));
            }
            for (const Json& content : contents) {
                for (const auto& [media, one] : content.items()) {
                    REQUIRE(one.contains("schema"));
                    const bool bytes =
                        media == "application/octet-stream" || media == "application/x-tar";
                    CHECK((one.at("schema").value("format", "") == "binary") == bytes);
                }
            }
        }
    }
    CHECK(schemas.at("Pool").at("properties").at("spec").at("$ref") ==
          "#/components/schemas/PoolSpec");
    CHECK(schemas.at("PoolManifest").at("properties").at("spec").at("$ref") ==
          "#/components/schemas/PoolSpec");
    CHECK(schemas.at("PoolSpec").at("properties").contains("template"));
    CHECK(schemas.at("Capabilities").at("properties").contains("images"));
}

TEST_CASE("each event of a stream has a type", "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json& schemas = document.at("components").at("schemas");
    for (const char* path : {"/v1/workspaces/{workspace}/executions", "/v1/executions"}) {
        const Json& stream = pathOf(document, path, "post")
                                 .at("responses")
                                 .at("200")
                                 .at("content")
                                 .at("text/event-stream")
                                 .at("schema");
        CHECK(stream.at("type") == "string");
        CHECK(stream.at("contentSchema").at("$ref") == "#/components/schemas/ExecutionEvent");
    }
    const Json& mapping = schemas.at("ExecutionEvent").at("discriminator").at("mapping");
    for (const char* event :
         {"waiting", "problem", "started", "stdout", "stderr", "result", "error", "exit"}) {
        INFO(event);
        CHECK(mapping.contains(event));
    }
    CHECK(schemas.at("ExitEvent").at("properties").at("data").at("$ref") ==
          "#/components/schemas/Execution");
    CHECK(schemas.at("EventMessage").at("properties").at("data").at("$ref") ==
          "#/components/schemas/Event");
}

TEST_CASE("examples of answers fit their schemas and do not contradict themselves",
          "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    std::size_t executions = 0;
    for (const rest::Operation& op : house.rest.operations()) {
        if (op.hidden) continue;
        for (const rest::Answer& answer : op.answers) {
            if (!answer.schema) continue;
            INFO(op.id << " " << answer.status);
            const Json example =
                answer.example.is_null() ? answer.schema->sample(true) : answer.example;
            CHECK_NOTHROW(answer.schema->validate(example, "the example"));
            const std::string id = example.value("id", "");
            if (!id.starts_with("ex_")) continue;
            ++executions;
            const bool runs = example.at("status") == "running";
            CHECK(runs == (answer.status == 202));
            CHECK(runs == example.at("exitCode").is_null());
            CHECK(runs == example.at("durationMs").is_null());
            CHECK((example.at("status") == "ok") == (example.at("exitCode") == 0));
            CHECK((example.at("status") == "ok" || runs) == example.at("error").is_null());
            CHECK(example.at("truncated") == (example.at("droppedBytes") > 0));
            CHECK(example.contains("claim") == (op.id == "executeOnce" && !runs));
        }
    }
    CHECK(executions >= 5);
    // Paths and answers use the same example ids.
    const std::string path = "/v1/workspaces/{workspace}";
    const Json& shown = pathOf(document, path.c_str(), "get");
    CHECK(shown.at("parameters").at(0).at("example") == shown.at("responses")
                                                            .at("200")
                                                            .at("content")
                                                            .at("application/json")
                                                            .at("example")
                                                            .at("id"));
}

TEST_CASE("the document has every operation that is served and no other", "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    CHECK(document.at("openapi") == "3.1.0");
    for (const char* told : {"Authorization: Bearer", "/mcp"}) {
        CHECK(document.at("info").at("description").get<std::string>().find(told) !=
              std::string::npos);
    }
    std::size_t shown = 0;
    std::set<std::string> ids;
    for (const rest::Operation& op : house.rest.operations()) {
        std::string path = op.pattern;
        if (const auto dots = path.find("...}"); dots != std::string::npos) path.erase(dots, 3);
        const std::string method = toLower(op.method);
        const bool there =
            document.at("paths").contains(path) && document.at("paths").at(path).contains(method);
        INFO(op.method << " " << op.pattern);
        CHECK(there == !op.hidden);
        if (!there) continue;
        ++shown;
        const Json& shape = document.at("paths").at(path).at(method);
        CHECK(ids.insert(shape.at("operationId").get<std::string>()).second);
        CHECK(!shape.at("summary").get<std::string>().empty());
        CHECK(shape.contains("requestBody") == (op.body_kind != rest::Body::None));
        CHECK(shape.at("responses").contains("500"));
        CHECK(shape.at("responses").contains("403"));
        CHECK(shape.at("responses").contains("401") == !op.open);
    }
    std::size_t total = 0;
    for (const auto& [path, methods] : document.at("paths").items()) total += methods.size();
    CHECK(total == shown);
}

TEST_CASE("the document declares tokens on the operations that need them if the server does",
          "[unit][rest]") {
    House house;
    const auto document = [&house] {
        FakeRequest question("GET", "/openapi.json");
        return parseJson(bodyOf(house.rest.handle(question)));
    };
    const Json open = document();
    CHECK(open.dump().find("\"security") == std::string::npos);

    house.tokens.known["secret"] = {"default", controller::Role::Admin, "tk_1"};
    const Json guarded = document();
    CHECK(guarded.at("components").at("securitySchemes") ==
          Json{{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}});
    CHECK_FALSE(guarded.contains("security"));
    std::set<std::string> without;
    for (const auto& [path, methods] : guarded.at("paths").items()) {
        for (const auto& [method, shape] : methods.items()) {
            INFO(method << " " << path);
            if (!shape.contains("security")) {
                without.insert(shape.at("operationId").get<std::string>());
            } else {
                CHECK(shape.at("security") == Json::array({Json{{"bearer", Json::array()}}}));
            }
        }
    }
    CHECK(without ==
          std::set<std::string>{"getOpenApi", "getDocs", "getRoot", "followLink", "headLink"});

    house.tokens.known.clear();
    house.tokens.had_some = true;  // everybody is refused
    CHECK(document() == guarded);
}

TEST_CASE("every reference of the document resolves", "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    std::set<std::string> references;
    collectReferences(document, references);
    CHECK(references.size() > 15);
    const Json& schemas = document.at("components").at("schemas");
    for (const std::string& reference : references) {
        INFO(reference);
        const std::string prefix = "#/components/schemas/";
        REQUIRE(reference.starts_with(prefix));
        CHECK(!schemas.at(reference.substr(prefix.size())).empty());
    }
}

TEST_CASE("the schema of a one shot has exactly the fields that a one shot supports",
          "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json& schemas = document.at("components").at("schemas");
    CHECK(!schemas.at("OneShotRequest").at("properties").contains("context"));
    CHECK(schemas.at("OneShotRequest").at("properties").contains("gpu"));
    CHECK(schemas.at("OneShotRequest").at("properties").contains("limits"));
    CHECK(schemas.at("ClaimLimits").at("properties").size() == 3);  // limits that can be narrowed
    CHECK(schemas.at("OneShotRequest").at("additionalProperties") == false);
}

TEST_CASE("examples of a schema fit it", "[unit][rest]") {
    House house;
    for (const rest::Operation& op : house.rest.operations()) {
        if (op.body_kind != rest::Body::Json && op.body_kind != rest::Body::OptionalJson) continue;
        Json components = Json::object();
        op.body.toOpenApi(components);
        for (const auto& [name, schema] : components.items()) {
            if (!schema.contains("examples") ||
                op.body.toOpenApi(components).at("$ref") != "#/components/schemas/" + name) {
                continue;
            }
            for (const Json& example : schema.at("examples")) {
                INFO(op.id << " " << example.dump());
                CHECK_NOTHROW(op.body.validate(example, "the example"));
            }
        }
    }
}

TEST_CASE("the page of the document shows every operation and loads nothing", "[unit][rest]") {
    House house;
    FakeRequest request("GET", "/docs");
    const api::Response response = house.rest.handle(request);
    const std::string html = bodyOf(response);
    CHECK(headerOf(response, "Content-Security-Policy").starts_with("default-src 'none'"));
    for (const rest::Operation& op : house.rest.operations()) {
        if (!op.hidden) CHECK(html.find("id=\"" + op.id + "\"") != std::string::npos);
    }
    CHECK(html.find("<script") == std::string::npos);
    CHECK(html.find("://") == std::string::npos);
}

TEST_CASE("the page of the document escapes all its input", "[unit][rest]") {
    const std::string evil = "<script>alert('x')&\"</script>";
    rest::Operation op;
    op.method = "GET";
    op.pattern = "/" + evil;
    op.id = op.summary = op.description = op.tag = evil;
    op.parameters = {{rest::Parameter::In::Query, evil, rest::Schema::oneOf({evil}), evil}};
    rest::Schema body = rest::Schema::object();
    body.optional(evil, rest::Schema::string().describe(evil).fallback(evil))
        .describe(evil)
        .example(evil)
        .named(evil);
    op.body_kind = rest::Body::Json;
    op.body = body;
    op.answers = {{200, evil, body, evil}};
    const std::string html = rest::docsPage(rest::openApiDocument({op}));
    CHECK(html.find("<script") == std::string::npos);
    CHECK(html.find("alert('") == std::string::npos);
    CHECK(html.find("&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;") != std::string::npos);
}

TEST_CASE("generators of clients find one name and one content type for each thing",
          "[unit][rest]") {
    House house;
    const Json document = parseJson(house.rest.openApi());
    const Json& schemas = document.at("components").at("schemas");
    for (const auto& [name, schema] : schemas.items()) {
        CAPTURE(name);
        CHECK_FALSE(schemas.contains("New" + name));  // Go's constructor of it
    }
    for (const auto& [path, methods] : document.at("paths").items()) {
        for (const auto& [method, operation] : methods.items()) {
            if (!operation.contains("requestBody")) continue;
            CAPTURE(path, method);
            std::set<std::string> shapes;
            const Json& content = operation.at("requestBody").at("content");
            for (const auto& [media, body] : content.items())
                shapes.insert(body.at("schema").dump());
            CHECK((shapes.size() == content.size() ||
                   shapes.contains(R"({"type":"string","format":"binary"})")));
        }
    }
}
