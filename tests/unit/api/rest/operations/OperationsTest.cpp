#include <catch2/catch.hpp>

#include "api/rest/model/Answers.h"
#include "controller/executions/SignedLink.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Happy {
    const char* operation;
    const char* method;
    std::string target;
    std::string body;
    int status;
};

/// Returns a link signed with this house's key.
std::string linkToFile() {
    controller::SignedLink link;
    link.tenant = "default";
    link.workspace = kWorkspace;
    link.path = "a.txt";
    link.expires_unix = 1LL << 40;
    return controller::linkPath(std::string(32, 'k'), link);
}

std::vector<Happy> happyPaths() {
    const std::string ws = "/v1/workspaces/" + kWorkspace;
    const std::string ex = "/v1/executions/" + kExecution;
    const std::string cx = "/v1/contexts/" + kContext;
    const std::string manifest =
        R"({"apiVersion":"hearth.dev/v1alpha1","kind":"SandboxPool",)"
        R"("metadata":{"name":"node"},"spec":{"template":{"image":"node"}}})";
    return {
        {"listWorkspaces", "GET", "/v1/workspaces?label=app=x&limit=5", "", 200},
        {"createWorkspace", "POST", "/v1/workspaces", R"({"pool":"python"})", 201},
        {"createWorkspaces", "POST", "/v1/workspaces:batch", R"({"count":2})", 201},
        {"getWorkspace", "GET", ws, "", 200},
        {"patchWorkspace", "PATCH", ws, R"({"labels":{"a":"b","c":null}})", 200},
        {"deleteWorkspace", "DELETE", ws, "", 204},
        {"touchWorkspace", "POST", ws + "/touch", "", 200},
        {"getWorkspaceUsage", "GET", ws + "/usage", "", 200},
        {"getWorkspaceEgress", "GET", ws + "/egress", "", 200},
        {"managePackages", "POST", ws + "/packages", R"({"check":["numpy"]})", 200},
        {"execute", "POST", ws + "/executions", R"({"command":"true"})", 200},
        {"executeOnce", "POST", "/v1/executions", R"({"code":"1","pool":"python"})", 200},
        {"listRunning", "GET", "/v1/executions?limit=5", "", 200},
        {"listExecutions", "GET", ws + "/executions", "", 200},
        {"getExecution", "GET", ex, "", 200},
        {"followExecution", "GET", ex + "/events", "", 200},
        {"writeStdin", "POST", ex + "/stdin?close=true", "bytes", 204},
        {"signalExecution", "POST", ex + "/signal", R"({"signal":"INT"})", 204},
        {"resizeExecution", "POST", ex + "/resize", R"({"cols":80,"rows":24})", 204},
        {"killExecution", "DELETE", ex, "", 204},
        {"listContexts", "GET", ws + "/contexts", "", 200},
        {"createContext", "POST", ws + "/contexts", R"({"language":"python","cwd":"d"})", 201},
        {"getContext", "GET", cx, "", 200},
        {"interruptContext", "POST", cx + "/interrupt", "", 204},
        {"restartContext", "POST", cx + "/restart", "", 200},
        {"deleteContext", "DELETE", cx, "", 204},
        {"readFile", "GET", ws + "/files/a.txt", "", 200},
        {"statFile", "HEAD", ws + "/files/a.txt", "", 200},
        {"writeFile", "PUT", ws + "/files/b/c.txt", "new", 200},
        {"removeFile", "DELETE", ws + "/files/b?recursive=true", "", 204},
        {"listFiles", "GET", ws + "/files?path=.&recursive=false", "", 200},
        {"moveFile", "POST", ws + "/files:move", R"({"from":"a","to":"b"})", 204},
        {"makeDirectory", "POST", ws + "/files:mkdir", R"({"path":"d"})", 204},
        {"readArchive", "GET", ws + "/archive?path=dir", "", 200},
        {"writeArchive", "PUT", ws + "/archive", "a tar", 200},
        {"createLink", "POST", ws + "/links", R"({"path":"a.txt"})", 201},
        {"followLink", "GET", linkToFile(), "", 200},
        {"headLink", "HEAD", linkToFile(), "", 200},
        {"listPools", "GET", "/v1/pools", "", 200},
        {"createPool", "POST", "/v1/pools", manifest, 201},
        {"getPool", "GET", "/v1/pools/python", "", 200},
        {"putPool", "PUT", "/v1/pools/node", manifest, 201},
        {"patchPool", "PATCH", "/v1/pools/python", R"({"spec":{"warm":{"min":4}}})", 200},
        {"deletePool", "DELETE", "/v1/pools/python", "", 204},
        {"drainPool", "POST", "/v1/pools/python/drain", "", 200},
        {"drainAll", "POST", "/v1/drain", "", 200},
        {"undrainAll", "POST", "/v1/undrain", "", 204},
        {"listPoolSandboxes", "GET", "/v1/pools/python/sandboxes", "", 200},
        {"listSandboxes", "GET", "/v1/sandboxes", "", 200},
        {"getSandbox", "GET", "/v1/sandboxes/" + kSandbox, "", 200},
        {"destroySandbox", "DELETE", "/v1/sandboxes/" + kSandbox, "", 204},
        {"listEvents", "GET", "/v1/events?since=0&type=", "", 400},
        {"listEvents", "GET", "/v1/events?since=0&type=workspace.created", "", 200},
        {"getCapabilities", "GET", "/v1/capabilities", "", 200},
        {"getOwnQuota", "GET", "/v1/quota", "", 200},
        {"listQuotas", "GET", "/v1/quotas", "", 200},
        {"getQuota", "GET", "/v1/quotas/shop", "", 200},
        {"putQuota", "PUT", "/v1/quotas/team", R"({"workspaces":10,"cpu":"8"})", 201},
        {"deleteQuota", "DELETE", "/v1/quotas/shop", "", 204},
        {"listGpus", "GET", "/v1/gpus", "", 200},
        {"getGpu", "GET", "/v1/gpus/GPU-00000000-0000-0000-0000-000000000001", "", 200},
        {"scrubGpu", "POST", "/v1/gpus/GPU-00000000-0000-0000-0000-000000000001/scrub", "", 202},
        {"listTokens", "GET", "/v1/tokens", "", 200},
        {"createToken", "POST", "/v1/tokens",
         R"({"name":"ci","role":"admin","expiresInSeconds":60})", 201},
        {"deleteToken", "DELETE", "/v1/tokens/tk_1", "", 204},
        {"getWorkspaceTimeline", "GET", ws + "/timeline", "", 200},
        {"getExecutionTimeline", "GET", ex + "/timeline", "", 200},
        {"getUsage", "GET", "/v1/usage?by=tenant,pool&since=7d", "", 200},
        {"listLogs", "GET", "/v1/logs?limit=5", "", 200},
        {"getLogLevel", "GET", "/v1/log-level", "", 200},
        {"putLogLevel", "PUT", "/v1/log-level", R"({"level":"debug"})", 200},
        {"getOpenApi", "GET", "/openapi.json", "", 200},
        {"getDocs", "GET", "/docs", "", 200},
        {"getRoot", "GET", "/", "", 200},
    };
}

const rest::Operation& operationNamed(const rest::RestHandler& handler, const std::string& id) {
    for (const rest::Operation& op : handler.operations()) {
        if (op.id == id) return op;
    }
    throw std::logic_error("no operation " + id);
}

api::Response call(House& house, const Happy& happy) {
    FakeRequest request(happy.method, happy.target, happy.body);
    if (!happy.body.empty() && happy.body.front() == '{') request.json();
    return house.rest.handle(request);
}

/// Checks that the table declares this response, and that the response fits its schema.
void fits(const rest::Operation& op, const api::Response& response) {
    CHECK(response.route == op.pattern);
    for (const rest::Answer& answer : op.answers) {
        if (answer.status != response.status) continue;
        if (answer.schema) {
            CHECK(headerOf(response, "Content-Type") == "application/json");
            CHECK_NOTHROW(answer.schema->validate(parseJson(bodyOf(response)), op.id));
        }
        return;
    }
    FAIL(op.id + " answered an undeclared status " + std::to_string(response.status));
}

}  // namespace

TEST_CASE("every operation answers in the shape that its table declares", "[unit][rest]") {
    std::set<std::string> covered;
    for (const Happy& happy : happyPaths()) {
        INFO(happy.operation << " " << happy.target);
        House house;
        house.executions.execution->end("ok", 0);
        house.events.add("workspace.created");
        house.capabilities = rest::capabilitiesSchema().examples().front();
        if (happy.status == 400) {
            CHECK_THROWS_AS(call(house, happy), Error);
            continue;
        }
        const api::Response response = call(house, happy);
        CHECK(response.status == happy.status);
        fits(operationNamed(house.rest, happy.operation), response);
        covered.insert(happy.operation);
    }
    House house;
    for (const rest::Operation& op : house.rest.operations()) {
        if (!op.hidden) CHECK(covered.contains(op.id));
    }
}

TEST_CASE("the body of a workspace reaches the service whole", "[unit][rest]") {
    House house;
    FakeRequest request(
        "POST", "/v1/workspaces",
        R"({"pool":"python","name":"n","labels":{"example.com/app":"x"},"env":{"A":"1"},)"
        R"("secrets":{"TOKEN":"s"},"files":[{"path":"a","text":"ä"},{"path":"b","base64":"AP8="}],)"
        R"("idleTimeoutSeconds":1.5,"maxLifetimeSeconds":60,"image":"python","language":"python",)"
        R"("network":"None","gpu":{"count":2,"product":"H100"}})");
    request.json().with("Idempotency-Key", "k1");
    const api::Response first = house.rest.handle(request);
    const controller::WorkspaceRequest& got = house.workspaces.request;
    CHECK(first.status == 201);
    CHECK(headerOf(first, "Location") == "/v1/workspaces/" + kWorkspace);
    CHECK(headerOf(first, "Idempotency-Replayed").empty());
    CHECK(parseJson(bodyOf(first)).at("traceId") == request.traceId());
    CHECK(got.pool == "python");
    CHECK(got.labels.at("example.com/app") == "x");
    CHECK(got.secrets.at("TOKEN") == "s");
    REQUIRE(got.gpu);
    CHECK((got.gpu->count == 2 && got.gpu->product == "H100"));
    CHECK(got.files.at(0).bytes == "ä");
    CHECK(got.files.at(1).bytes == std::string("\0\xFF", 2));
    CHECK(got.idle_timeout == std::chrono::milliseconds(1500));
    CHECK(got.max_lifetime == std::chrono::seconds(60));
    CHECK(got.idempotency_key == "k1");
    CHECK(got.fingerprint.size() == 64);
    CHECK(got.started_at == request.startedAt());

    FakeRequest again("POST", "/v1/workspaces", R"({"pool":"python"})");
    again.json().with("Idempotency-Key", "k1");
    CHECK(headerOf(house.rest.handle(again), "Idempotency-Replayed") == "true");
}

TEST_CASE("an absent body of a workspace is an empty one", "[unit][rest]") {
    House house;
    FakeRequest request("POST", "/v1/workspaces");
    CHECK(house.rest.handle(request).status == 201);
    CHECK(!house.workspaces.request.pool);
}

TEST_CASE("a fingerprint ignores the order of keys and sees everything else", "[unit][rest]") {
    const auto print = [](const char* path, const char* body) {
        return rest::requestFingerprint(std::string(32, 'k'), "POST", path, parseJson(body));
    };
    CHECK(print("/a", R"({"x":1,"y":{"b":2,"a":1}})") ==
          print("/a", R"({"y":{"a":1,"b":2},"x":1})"));
    CHECK(print("/a", R"({"x":1})") != print("/a", R"({"x":2})"));
    CHECK(print("/a", R"({"x":1})") != print("/b", R"({"x":1})"));
}

TEST_CASE("operations refuse callers without the required role", "[unit][rest]") {
    House house;
    house.tokens.known["u"] = {"acme", controller::Role::User, "tk_u"};
    house.tokens.known["o"] = {"acme", controller::Role::Operator, "tk_o"};
    const auto status = [&house](const char* token, const Happy& happy) {
        FakeRequest request(happy.method, happy.target, happy.body);
        request.with("Authorization", std::string("bearer ") + token);
        if (!happy.body.empty() && happy.body.front() == '{') request.json();
        try {
            return house.rest.handle(request).status;
        } catch (const Error& error) {
            return errorCodeStatus(error.code());
        }
    };
    house.executions.execution->end("ok", 0);
    for (const Happy& happy : happyPaths()) {
        if (happy.status == 400) continue;
        INFO(happy.operation);
        const rest::Operation& op = operationNamed(house.rest, happy.operation);
        const bool user = op.role == controller::Role::User;
        const bool admin = op.role == controller::Role::Admin;
        CHECK(status("u", happy) == (user ? happy.status : 403));
        CHECK(status("o", happy) == (admin ? 403 : happy.status));
        CHECK(status("nobody", happy) == (op.open ? happy.status : 401));
    }
}

TEST_CASE("limits of a claim reach the service, and a limit that cannot be lowered is refused",
          "[unit][rest]") {
    House house;
    const auto send = [&](const char* target, const std::string& body) {
        FakeRequest request("POST", target, body);
        request.json();
        return house.rest.handle(request).status;
    };
    const auto refused = [&](const std::string& limits) {
        try {
            send("/v1/workspaces", R"({"limits":)" + limits + "}");
        } catch (const Error& error) {
            const bool told = !error.fields().empty() && !error.hint().empty();
            return std::string(errorCodeName(error.code())) +
                   (told ? error.fields().front().pointer : "");
        }
        return std::string("served");
    };
    CHECK(send("/v1/workspaces", R"({"limits":{"cpu":0.29,"memoryBytes":67108864,"pids":32}})") ==
          201);
    const controller::ClaimLimits& limits = house.workspaces.request.limits;
    CHECK(limits.milli_cpu == 290U);
    CHECK(limits.memory_bytes == 64U << 20U);
    CHECK(limits.pids == 32U);
    CHECK(send("/v1/workspaces", R"({"limits":{"pids":8}})") == 201);
    CHECK_FALSE(limits.milli_cpu);
    CHECK(send("/v1/workspaces", R"({"limits":{}})") == 201);
    CHECK(limits.empty());

    CHECK(refused(R"({"cpu":0.009})") == "INVALID_ARGUMENT/limits/cpu");
    CHECK(refused(R"({"memoryBytes":33554431})") == "INVALID_ARGUMENT/limits/memoryBytes");
    CHECK(refused(R"({"pids":7})") == "INVALID_ARGUMENT/limits/pids");
    CHECK(refused(R"({"pids":8.5})") == "INVALID_ARGUMENT/limits/pids");
    CHECK(refused(R"({"disk":1})") == "INVALID_ARGUMENT/limits/disk");
    CHECK(refused(R"([])") == "INVALID_ARGUMENT/limits");
    CHECK(refused(R"({"workspaceBytes":1048576})") == "INVALID_SPEC/limits/workspaceBytes");
    CHECK(refused(R"({"pids":8,"tmpBytes":1048576})") == "INVALID_SPEC/limits/tmpBytes");
    CHECK(refused(R"({"pids":7,"tmpBytes":1048576})") == "INVALID_ARGUMENT/limits/pids");
}

TEST_CASE("a pool document that was read may be sent back while its version holds",
          "[unit][rest]") {
    House house;
    FakeRequest get("GET", "/v1/pools/python");
    const api::Response read = house.rest.handle(get);
    CHECK(headerOf(read, "ETag") == "\"7\"");

    FakeRequest put("PUT", "/v1/pools/python", bodyOf(read));
    put.json();
    CHECK(house.rest.handle(put).status == 200);
    CHECK(house.pools.if_match == 7);
    CHECK(!house.pools.document.contains("status"));
    CHECK(house.pools.document.at("metadata") == Json{{"name", "python"}});

    FakeRequest stale("PUT", "/v1/pools/python", bodyOf(read));
    stale.json().with("If-Match", "\"6\"");
    try {
        house.rest.handle(stale);
        FAIL("was served");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::PreconditionFailed);
    }
    FakeRequest odd("PATCH", "/v1/pools/python", "{}");
    odd.with("Content-Type", "application/merge-patch+json").with("If-Match", "\"x\"");
    CHECK_THROWS_AS(house.rest.handle(odd), Error);
}

TEST_CASE("a page of events names the next one only when it is full", "[unit][rest]") {
    House house;
    for (int i = 0; i < 3; ++i) house.events.add("workspace.created");
    FakeRequest first("GET", "/v1/events?limit=2");
    const Json page = parseJson(bodyOf(house.rest.handle(first)));
    CHECK(page.at("items").size() == 2);
    CHECK(page.at("nextCursor") == "2");
    FakeRequest second("GET", "/v1/events?limit=2&cursor=2");
    const Json rest = parseJson(bodyOf(house.rest.handle(second)));
    CHECK(rest.at("items").size() == 1);
    CHECK(rest.at("nextCursor").is_null());
}

TEST_CASE("an unknown path is 404 and another method 405 with what is allowed", "[unit][rest]") {
    House house;
    FakeRequest nowhere("GET", "/v1/nothing");
    CHECK_THROWS_AS(house.rest.handle(nowhere), Error);
    FakeRequest wrong("PUT", "/v1/drain");
    const api::Response response = house.rest.handle(wrong);
    CHECK(response.status == 405);
    CHECK(headerOf(response, "Allow").find("POST") != std::string::npos);
}

TEST_CASE("a context by name is answered with 200 if it exists, else with 201", "[unit][rest]") {
    House house;
    for (const bool known : {false, true}) {
        FakeRequest request("POST", "/v1/workspaces/" + kWorkspace + "/contexts",
                            known ? R"({"name":"known"})" : R"({"name":"new"})");
        request.json();
        const api::Response response = house.rest.handle(request);
        CHECK(response.status == (known ? 200 : 201));
        CHECK(headerOf(response, "Location") == "/v1/contexts/" + kContext);
    }
    CHECK(house.contexts.workspace == kWorkspace);
}

TEST_CASE("an execution in a context takes code, but no field that belongs to the context",
          "[unit][rest]") {
    const std::string target = "/v1/workspaces/" + kWorkspace + "/executions";
    const auto field = [&](const std::string& where, const std::string& body) -> std::string {
        House house;
        FakeRequest request("POST", where, body);
        request.json();
        try {
            house.rest.handle(request);
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::InvalidArgument);
            return e.fields().empty() ? "none" : e.fields().front().pointer;
        }
        CHECK(house.executions.request.context == kContext);
        CHECK_FALSE(house.executions.request.stdin_open);
        return "";
    };
    const std::string context = R"("context":")" + kContext + "\"";
    CHECK(field(target, R"({"code":"1","background":true,)" + context + "}").empty());
    CHECK(field(target, R"({"code":"1","context":"cx_1"})") == "/context");
    CHECK(field(target, R"({"command":"ls",)" + context + "}") == "/context");
    CHECK(field(target, R"({"code":"1","cwd":"d",)" + context + "}") == "/cwd");
    CHECK(field(target, R"({"code":"1","env":{"A":"b"},)" + context + "}") == "/env");
    CHECK(field(target, R"({"code":"1","stdin":"x",)" + context + "}") == "/stdin");
    CHECK(field(target, R"({"code":"1","stdinOpen":true,)" + context + "}") == "/stdinOpen");
    CHECK(field("/v1/executions", R"({"code":"1",)" + context + "}") == "/context");
}
