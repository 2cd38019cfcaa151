#include <catch2/catch.hpp>

#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Bad {
    std::string body;
    ErrorCode code;
    std::string pointer;  ///< one pointer of the errors; "" if the document has none
};

/// Returns the error that `handle` throws for this request.
Error refused(House& house, FakeRequest& request) {
    try {
        house.rest.handle(request);
    } catch (const Error& error) {
        return error;
    }
    FAIL("was served: " + request.path());
    throw std::logic_error("unreachable");
}

bool names(const Error& error, const std::string& pointer) {
    for (const FieldError& field : error.fields()) {
        if (field.pointer == pointer && !field.reason.empty()) return true;
    }
    return false;
}

/// Returns faults that every JSON body may have.
std::vector<Bad> commonFaults(bool empty_allowed) {
    std::vector<Bad> all{
        {"[]", ErrorCode::InvalidArgument, ""},
        {"\"text\"", ErrorCode::InvalidArgument, ""},
        {"null", ErrorCode::InvalidArgument, ""},
        {"{", ErrorCode::InvalidArgument, "-"},
        {"{} {}", ErrorCode::InvalidArgument, "-"},
        {"{\"a\":1,\"a\":2}", ErrorCode::InvalidArgument, "-"},
        {"{\"a\":\"\xFF\"}", ErrorCode::InvalidArgument, "-"},
        {"{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}",
         ErrorCode::InvalidArgument, "-"},
        {"{\"noSuchField\":1}", ErrorCode::InvalidArgument, "/noSuchField"},
        {"{\"a/b~\":1}", ErrorCode::InvalidArgument, "/a~1b~0"},
        {"{\"a\":\"" + std::string(5U << 20U, 'x') + "\"}", ErrorCode::PayloadTooLarge, "-"},
    };
    if (!empty_allowed) all.push_back({"", ErrorCode::InvalidArgument, "-"});
    return all;
}

void refuses(const std::string& method, const std::string& target, const std::vector<Bad>& all) {
    for (const Bad& bad : all) {
        INFO(method << " " << target << " " << bad.body.substr(0, 100));
        House house;
        FakeRequest request(method, target, bad.body);
        request.json();
        const Error error = refused(house, request);
        CHECK(errorCodeName(error.code()) == errorCodeName(bad.code));
        CHECK(std::string(error.what()).size() > 5);
        if (bad.pointer != "-") CHECK(names(error, bad.pointer));
    }
}

std::string filled(std::string pattern) {
    const std::vector<std::pair<std::string, std::string>> values{
        {"{workspace}", kWorkspace}, {"{execution}", kExecution}, {"{pool}", "python"}};
    for (const auto& [name, value] : values) {
        if (const auto at = pattern.find(name); at != std::string::npos) {
            pattern.replace(at, name.size(), value);
        }
    }
    return pattern;
}

constexpr ErrorCode kInvalid = ErrorCode::InvalidArgument;

}  // namespace

TEST_CASE("every operation with a JSON body refuses a body of another form", "[unit][rest]") {
    House table;
    int seen = 0;
    for (const rest::Operation& op : table.rest.operations()) {
        const bool optional = op.body_kind == rest::Body::OptionalJson;
        if (op.body_kind != rest::Body::Json && !optional) continue;
        ++seen;
        refuses(op.method, filled(op.pattern), commonFaults(optional));

        House house;
        FakeRequest form(op.method, filled(op.pattern), "{}");
        form.with("Content-Type", "text/plain");
        const Error error = refused(house, form);
        CHECK(error.code() == kInvalid);
        CHECK(error.hint().find("application/json") != std::string::npos);
    }
    CHECK(seen == 18);
}

TEST_CASE("bad workspaces are refused with a pointer to the fault", "[unit][rest]") {
    const std::string many = [] {
        Json env = Json::object();
        for (int i = 0; i < 129; ++i) env["A" + std::to_string(i)] = "";
        return dumpJson({{"env", env}});
    }();
    refuses("POST", "/v1/workspaces",
            {{R"({"pool":1})", kInvalid, "/pool"},
             {R"({"pool":"Not A Name"})", kInvalid, "/pool"},
             {R"({"labels":{"a b":"x"}})", kInvalid, "/labels/a b"},
             {R"({"labels":{"a":"b c"}})", kInvalid, "/labels/a"},
             {R"({"env":{"1A":"x"}})", kInvalid, "/env/1A"},
             {R"({"env":{"A":1}})", kInvalid, "/env/A"},
             {R"({"env":{"A":"x\u0000y"}})", kInvalid, "/env/A"},
             {"{\"env\":{\"A\":\"" + std::string(32769, 'x') + "\"}}", kInvalid, "/env/A"},
             {many, kInvalid, "/env"},
             {R"({"files":[{"path":"a"}]})", kInvalid, "/files/0"},
             {R"({"files":[{"path":"a","text":"x","base64":""}]})", kInvalid, "/files/0"},
             {R"({"files":[{"text":"x"}]})", kInvalid, "/files/0/path"},
             {R"({"files":[{"path":"","text":"x"}]})", kInvalid, "/files/0/path"},
             {R"({"files":[{"path":"a","base64":"%%"}]})", kInvalid, "/files/0/base64"},
             {R"({"files":{}})", kInvalid, "/files"},
             {R"({"idleTimeoutSeconds":0})", kInvalid, "/idleTimeoutSeconds"},
             {R"({"idleTimeoutSeconds":1e300})", kInvalid, "/idleTimeoutSeconds"},
             {R"({"maxLifetimeSeconds":"60"})", kInvalid, "/maxLifetimeSeconds"},
             {R"({"network":"Wide"})", kInvalid, "/network"},
             {R"({"gpu":{"count":17}})", kInvalid, "/gpu/count"},
             {R"({"gpu":{"count":1,"model":"x"}})", kInvalid, "/gpu/model"},
             {R"({"gpu":1})", kInvalid, "/gpu"},
             {R"({"gpu":{"count":1},"pool":1})", kInvalid, "/pool"}});
}

TEST_CASE("bad executions are refused with a pointer to the fault", "[unit][rest]") {
    for (const std::string& target :
         {std::string("/v1/executions"), "/v1/workspaces/" + kWorkspace + "/executions"}) {
        refuses("POST", target,
                {{R"({})", kInvalid, ""},
                 {R"({"command":"a","code":"b"})", kInvalid, ""},
                 {R"({"argv":[]})", kInvalid, "/argv"},
                 {R"({"argv":["a",1]})", kInvalid, "/argv/1"},
                 {R"({"command":"a\u0000b"})", kInvalid, "/command"},
                 {R"({"command":"a","timeoutSeconds":0})", kInvalid, "/timeoutSeconds"},
                 {R"({"command":"a","timeoutSeconds":86401})", kInvalid, "/timeoutSeconds"},
                 {R"({"command":"a","outputLimitBytes":1})", kInvalid, "/outputLimitBytes"},
                 {R"({"command":"a","outputLimitBytes":2000.5})", kInvalid, "/outputLimitBytes"},
                 {R"({"command":"a","background":"yes"})", kInvalid, "/background"},
                 {R"({"command":"a","paced":true})", kInvalid, "/paced"},
                 {R"({"command":"a","paced":true,"outputLimitBytes":9000})", kInvalid,
                  "/outputLimitBytes"},
                 {R"({"command":"a","pty":{"cols":80}})", kInvalid, "/pty/rows"},
                 {R"({"command":"a","pty":{"cols":0,"rows":1}})", kInvalid, "/pty/cols"},
                 {R"({"command":"a","stdin":"x","stdinOpen":true})", kInvalid, "/stdinOpen"},
                 {R"({"command":"a","cwd":""})", kInvalid, "/cwd"}});
    }
    refuses("POST", "/v1/workspaces/" + kWorkspace + "/executions",
            {{R"({"command":"a","pool":"python"})", kInvalid, "/pool"}});
}

TEST_CASE("the other bodies are refused with a pointer too", "[unit][rest]") {
    const std::string ws = "/v1/workspaces/" + kWorkspace;
    const std::string ex = "/v1/executions/" + kExecution;
    refuses("PATCH", ws,
            {{R"({"labels":{"a":1}})", kInvalid, "/labels/a"},
             {R"({"idleTimeoutSeconds":-1})", kInvalid, "/idleTimeoutSeconds"}});
    refuses("POST", ex + "/signal",
            {{R"({"signal":"SIGINT"})", kInvalid, "/signal"}, {R"({})", kInvalid, "/signal"}});
    refuses("POST", ex + "/resize", {{R"({"cols":1})", kInvalid, "/rows"}});
    refuses("POST", ws + "/files:move", {{R"({"from":"a"})", kInvalid, "/to"}});
    refuses("POST", ws + "/files:mkdir", {{R"({"path":"a\u0000"})", kInvalid, "/path"}});
    refuses("POST", "/v1/pools",
            {{R"({"kind":"SandboxPool"})", kInvalid, "/spec"},
             {R"({"metadata":[]})", kInvalid, "/metadata"}});
    refuses("PATCH", "/v1/pools/python",
            {{R"({"metadata":{"resourceVersion":"x"}})", kInvalid, "/metadata/resourceVersion"}});
    refuses("POST", "/v1/tokens",
            {{R"({"name":"a","role":"root"})", kInvalid, "/role"},
             {R"({"name":""})", kInvalid, "/name"},
             {R"({"name":"a","tenant":"a/b"})", kInvalid, "/tenant"}});
}

TEST_CASE("query parameters are typed, known and single", "[unit][rest]") {
    const std::vector<std::pair<std::string, std::string>> all{
        {"/v1/workspaces?limit=0", "?limit"},
        {"/v1/workspaces?limit=x", "?limit"},
        {"/v1/workspaces?limit=1&limit=2", "?limit"},
        {"/v1/workspaces?page=2", "?page"},
        {"/v1/workspaces?label=novalue", "?label/0"},
        {"/v1/workspaces?cursor=%FF", "?cursor"},
        {"/v1/events?since=-1", "?since"},
        {"/v1/capabilities?x=1", "?x"},
        {"/v1/workspaces/" + kWorkspace + "/files?recursive=1", "?recursive"},
    };
    for (const auto& [target, pointer] : all) {
        INFO(target);
        House house;
        FakeRequest request("GET", target);
        const Error error = refused(house, request);
        CHECK(error.code() == kInvalid);
        CHECK(names(error, pointer));
    }
}

TEST_CASE("an idempotency key is 1 to 255 visible characters", "[unit][rest]") {
    for (const std::string& key :
         {std::string(), std::string("a b"), std::string(256, 'k'), std::string("\xC3\xA4")}) {
        House house;
        FakeRequest request("POST", "/v1/workspaces", "{}");
        request.json().with("Idempotency-Key", key);
        CHECK(refused(house, request).code() == kInvalid);
    }
}

TEST_CASE("unknown fields are named together with what is allowed", "[unit][rest]") {
    House house;
    FakeRequest request("POST", "/v1/workspaces", R"({"poool":"python","lables":{}})");
    request.json();
    const Error error = refused(house, request);
    REQUIRE(error.fields().size() == 2);
    CHECK(error.fields()[0].reason.find("known are: pool, name") != std::string::npos);
}
