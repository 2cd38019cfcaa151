#include <catch2/catch.hpp>

#include "api/mcp/http/ModernHeaders.h"
#include "tests/unit/api/mcp/Scene.h"

namespace hearth::mcp {
TEST_CASE("server/discover names the modern versions only, and the server", "[unit][mcp]") {
    Scene scene;
    const Json answer = scene.postJson(modern(scene, "server/discover", "probe"));
    CHECK(answer["id"] == "probe");
    const Json& result = answer["result"];
    CHECK(result["supportedVersions"] == Json{kVersion});
    CHECK(result["resultType"] == "complete");
    CHECK(result["cacheScope"] == "private");
    CHECK(result["ttlMs"].get<int>() > 0);
    CHECK(result["_meta"][envelope::kServer]["name"] == "hearth");
    CHECK_FALSE(result.contains("serverInfo"));
}

TEST_CASE("every list and read says how long it may be kept", "[unit][mcp]") {
    Scene scene;
    for (const char* method :
         {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
        const Json result = scene.postJson(modern(scene, method, 1))["result"];
        CHECK(result.contains("ttlMs"));
        CHECK(result["cacheScope"] == "private");
    }
}

TEST_CASE("an envelope, a version and headers are checked in the order of the revision",
          "[unit][mcp]") {
    Scene scene;
    Json request = modern(scene, "tools/list", 1);
    request["params"]["_meta"].erase(envelope::kCapabilities);
    CHECK(scene.post(request).status == 400);
    CHECK(errorCode(scene.postJson(request)) == rpc::kInvalidParams);

    request = modern(scene, "tools/list", 1);
    request["params"]["_meta"][envelope::kVersion] = "2027-01-01";
    CHECK(errorCode(scene.postJson(request)) == rpc::kHeaderMismatch);
    scene.set("MCP-Protocol-Version", "2027-01-01");
    const Json unsupported = scene.postJson(request);
    CHECK(errorCode(unsupported) == rpc::kUnsupportedVersion);
    CHECK(unsupported["error"]["data"] ==
          Json{{"supported", {kVersion}}, {"requested", "2027-01-01"}});

    request = modern(scene, "tools/list", 1);
    scene.set("Mcp-Method", "tools/call");
    CHECK(errorCode(scene.postJson(request)) == rpc::kHeaderMismatch);
    request = modern(scene, "tools/call", 1, {{"name", "pool_list"}});
    scene.set("Mcp-Name", "run");
    CHECK(scene.post(request).status == 400);
    scene.set("Mcp-Name", "=?base64?cG9vbF9saXN0?=");
    CHECK(scene.post(request).status == 200);
    scene.set("Mcp-Name", "=?base64?cG9vbF9saXN0");
    CHECK(scene.post(request).status == 400);
}

TEST_CASE("methods of the old eras are unknown in the new one, and the other way round",
          "[unit][mcp]") {
    Scene scene;
    for (const char* method : {"ping", "logging/setLevel", "resources/subscribe", "no/such"}) {
        const Json request = modern(scene, method, 1);
        CHECK(scene.post(request).status == 404);
        CHECK(errorCode(scene.postJson(request)) == rpc::kMethodNotFound);
    }
    Scene old;
    old.open();
    CHECK(errorCode(old.postJson(message("server/discover", 1))) == rpc::kMethodNotFound);
}

TEST_CASE("errors of handlers are 200, so that clients read them", "[unit][mcp]") {
    Scene scene;
    const Json unknown = modern(scene, "tools/call", 1, {{"name", "nope"}});
    CHECK(scene.post(unknown).status == 200);
    CHECK(errorCode(scene.postJson(unknown)) == rpc::kInvalidParams);
    const Json missing = modern(scene, "resources/read", 1, {{"uri", "other://nope"}});
    const Json answer = scene.postJson(missing);
    CHECK(errorCode(answer) == rpc::kInvalidParams);
    CHECK(answer["error"]["data"] == Json{{"uri", "other://nope"}});
    Scene old;
    old.open();
    CHECK(errorCode(old.postJson(message("resources/read", 1, {{"uri", "x://y"}}))) ==
          rpc::kResourceNotFound);
}

TEST_CASE("a modern client that hangs up has cancelled its call", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    const Json params = runMessage(1)["params"];
    const std::shared_ptr<FakeStream> stream =
        started(scene.post(modern(scene, "tools/call", 1, params)));
    stream->finish();
    const TimePoint late = SystemClock().now() + std::chrono::seconds(10);
    while (!scene.house.executions.newest()->finished() && SystemClock().now() < late) {
        std::this_thread::yield();
    }
    CHECK(scene.house.executions.newest()->view().status == controller::ExecutionStatus::Killed);
}

TEST_CASE("a subscription gets its acknowledgement first, then the requested changes",
          "[unit][mcp]") {
    Scene scene;
    const Json request = modern(scene, "subscriptions/listen", "listen:0",
                                {{"notifications", {{"toolsListChanged", true}}}});
    const std::shared_ptr<FakeStream> stream = started(scene.post(request));
    const std::string first = stream->until("acknowledged");
    CHECK(first.find(R"("notifications":{"toolsListChanged":true})") != std::string::npos);
    scene.surface.notifier().toolsChanged();
    const std::string sent = stream->until("tools/list_changed");
    CHECK(sent.find(R"("io.modelcontextprotocol/subscriptionId":"listen:0")") != std::string::npos);

    const Json nothing =
        modern(scene, "subscriptions/listen", 5, {{"notifications", Json::object()}});
    const std::string whole = std::get<std::string>(scene.post(nothing).body);
    CHECK(whole.find("\"id\":5") > whole.find("acknowledged"));
    CHECK(errorCode(scene.postJson(modern(scene, "subscriptions/listen", 6))) ==
          rpc::kInvalidParams);
}

TEST_CASE("headers carry literals and strict base64", "[unit][mcp]") {
    CHECK(decodedHeader(" plain ") == "plain");
    CHECK(decodedHeader("=?base64?4pyT?=") == "✓");
    CHECK_FALSE(decodedHeader("=?base64?4pyT=?="));
    CHECK_FALSE(decodedHeader("=?base64?!!!!?="));
    CHECK(decodedHeader("=?BASE64?4pyT?=") == "=?BASE64?4pyT?=");
}

}  // namespace hearth::mcp
