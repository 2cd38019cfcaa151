#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "tests/support/Support.h"
#include "tests/unit/api/mcp/Scene.h"

namespace hearth::mcp {

TEST_CASE("initialize answers version, capabilities and a session", "[unit][mcp]") {
    Scene scene;
    const Json params = {{"protocolVersion", "2025-06-18"}};
    const Json result = scene.postJson(message("initialize", 0, params))["result"];
    CHECK(result["protocolVersion"] == "2025-06-18");
    CHECK(result["capabilities"]["tools"] == Json{{"listChanged", true}});
    CHECK(result["capabilities"]["resources"]["subscribe"] == true);
    CHECK(result["instructions"].get<std::string>().size() > 100);
    CHECK(errorCode(scene.postJson(message("initialize", "i"))) == -32602);
}

TEST_CASE("HTTP rules of the transport are kept", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const Json initialized = {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}};
    CHECK(scene.post(initialized).status == 202);
    CHECK(std::get<std::string>(scene.post(initialized).body).empty());
    CHECK(scene.post(message("no/such", 1)).status == 200);
    CHECK(errorCode(scene.postJson(message("no/such", 1))) == -32601);
    CHECK(scene.postJson(message("ping", 0)) == resultMessage(0, Json::object()));
    CHECK(scene.send("PUT", "").status == 405);
    CHECK(scene.send("PUT", "").headers.has("Allow"));
    CHECK(scene.send("POST", "{").status == 400);
    const api::Response large = scene.send("POST", std::string(5U << 20U, ' '));
    CHECK(large.status == 413);
    CHECK(std::get<std::string>(large.body).find("The message is larger than 4 MiB") !=
          std::string::npos);
    scene.set("Accept", "text/html");
    CHECK(scene.post(message("ping", 1)).status == 406);
    scene.set("Accept", "application/json");
    CHECK(scene.post(message("ping", 1)).status == 200);
    scene.set("Accept", "text/event-stream");
    CHECK(std::get<std::string>(scene.post(message("ping", 1)).body).starts_with("event: message"));
    scene.set("Content-Type", "text/plain");
    CHECK(scene.post(message("ping", 1)).status == 415);
}

TEST_CASE("a request needs a live session", "[unit][mcp]") {
    Scene scene;
    CHECK(scene.post(message("ping", 1)).status == 400);
    scene.set("Mcp-Session-Id", "unknown");
    CHECK(scene.post(message("ping", 1)).status == 404);
    scene.open();
    scene.set("MCP-Protocol-Version", "1900-01-01");
    CHECK(scene.post(message("ping", 1)).status == 400);
    scene.set("MCP-Protocol-Version", "2025-11-25");
    CHECK(scene.post(message("ping", 1)).status == 200);
    CHECK(scene.send("DELETE", "").status == 204);
    CHECK(scene.post(message("ping", 1)).status == 404);
    CHECK(scene.send("DELETE", "").status == 404);
}

TEST_CASE("a session of one tenant is unknown to another", "[unit][mcp]") {
    Scene scene;
    scene.house.tokens.known = twoTenants();
    CHECK_THROWS_AS(scene.post(message("ping", 1)), Error);
    scene.set("Authorization", "Bearer token-a");
    scene.open();
    CHECK(scene.post(message("ping", 1)).status == 200);
    scene.set("Authorization", "Bearer token-b");
    CHECK(scene.post(message("ping", 1)).status == 404);
}

TEST_CASE("batches are answered in 2025-03-26 only", "[unit][mcp]") {
    Scene scene;
    const Json batch = Json::array({message("ping", 1), message("ping", "2")});
    scene.open();
    CHECK(scene.post(batch).status == 400);
    scene.open("2025-03-26");
    const Json answers = scene.postJson(batch);
    REQUIRE(answers.size() == 2);
    CHECK(answers[0]["id"] == 1);
    CHECK(answers[1]["id"] == "2");
    const Json wrong = scene.postJson(Json::array({message("initialize", 1)}));
    CHECK(errorCode(wrong[0]) == -32600);
}

TEST_CASE("the answers to a batch have a bound together, and none is missing", "[unit][mcp]") {
    Scene scene(std::chrono::seconds(5));
    scene.house.executions.behave = [](const auto&, const auto& execution) {
        execution->show("image/png", std::string(600'000, 'A'));
        execution->end("ok", 0);
    };
    scene.open("2025-03-26");
    Json batch = Json::array();
    for (int id = 0; id < 10; ++id) batch.push_back(runMessage(id));
    const api::Response response = scene.post(batch);
    const std::string& body = std::get<std::string>(response.body);
    CHECK(body.size() < (4U << 20U) + 10'000);
    CHECK(body.size() > 3'000'000);
    const Json answers = parseJson(body);
    REQUIRE(answers.size() == 10);
    for (int id = 0; id < 10; ++id) CHECK(answers[static_cast<std::size_t>(id)]["id"] == id);
    CHECK(answers[5].contains("result"));
    CHECK(errorCode(answers[9]) == -32000);
}

TEST_CASE("an unknown tool is a protocol error, a failing tool a result", "[unit][mcp]") {
    Scene scene;
    scene.open();
    CHECK(errorCode(scene.postJson(message("tools/call", 1, {{"name", "nope"}}))) == -32602);
    const Json call = {{"name", "run"}, {"arguments", Json::object()}};
    CHECK(scene.postJson(message("tools/call", 1, call))["result"]["isError"] == true);
}

TEST_CASE("arguments and parameters that are null are left out", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const Json none = nullptr;
    CHECK(scene.postJson(message("ping", 1, none)) == resultMessage(1, Json::object()));
    const Json tools = scene.postJson(message("tools/list", 2, {{"cursor", none}}));
    CHECK(tools["result"]["tools"].size() == 10);
    const Json called = scene.postJson(message(
        "tools/call", 3, {{"name", "workspace_list"}, {"arguments", none}, {"_meta", none}}));
    CHECK_FALSE(called["result"].value("isError", false));
    const Json prompts = scene.postJson(message("prompts/list", 4, none));
    const std::string prompt = prompts["result"]["prompts"].at(0)["name"];
    CHECK(scene.postJson(message("prompts/get", 5, {{"name", prompt}, {"arguments", none}}))
              .contains("result"));
    const Json typed = {{"ref", {{"type", "ref/prompt"}, {"name", prompt}}},
                        {"argument", {{"name", "x"}, {"value", ""}}}};
    for (const Json& context : {none, Json::object(), Json{{"arguments", none}}}) {
        Json params = typed;
        params["context"] = context;
        CHECK(scene.postJson(message("completion/complete", 6, params)).contains("result"));
    }
    const Json wrong = {{"name", "workspace_list"}, {"arguments", 1}};
    CHECK(scene.postJson(message("tools/call", 7, wrong))["result"]["isError"] == true);
}

TEST_CASE("a quick call is answered as JSON", "[unit][mcp]") {
    Scene scene(std::chrono::seconds(5));
    scene.open();
    const Json result = scene.postJson(runMessage(7))["result"];
    CHECK(result["content"][0]["text"].get<std::string>().starts_with("ok, exit 0"));
    CHECK_FALSE(result.contains("structuredContent"));
}

TEST_CASE("a run that its agent refuses gives a result with the reason", "[unit][mcp]") {
    Scene scene(std::chrono::seconds(5));
    scene.house.executions.behave = [](const auto&, const auto& execution) {
        execution->refusal = Error(ErrorCode::Conflict, "the sandbox has too many processes");
    };
    scene.open();
    const Json result = scene.postJson(runMessage(7))["result"];
    CHECK(result["isError"] == true);
    CHECK(result["content"][0]["text"].get<std::string>().find("too many processes") !=
          std::string::npos);
}

TEST_CASE("a slow call becomes a stream with progress and one result", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage(7));
    CHECK(response.keepalive == ": keepalive\n\n");
    const std::shared_ptr<FakeStream> stream = started(response);
    CHECK(stream->until("notifications/progress").find("\"progressToken\":\"p\"") !=
          std::string::npos);
    scene.house.executions.newest()->end("ok", 0);
    const std::string sent = stream->until("");
    CHECK(sent.find("\"id\":7,\"result\"") != std::string::npos);
    CHECK(sent.ends_with("\n\n"));
    CHECK(stream->closed());
}

TEST_CASE("a cancelled call is killed and gets no answer", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage("c"));
    const std::shared_ptr<FakeStream> stream = started(response);
    const Json cancel = {{"jsonrpc", "2.0"},
                         {"method", "notifications/cancelled"},
                         {"params", {{"requestId", "c"}}}};
    CHECK(scene.post(cancel).status == 202);
    CHECK(stream->until("").find("\"result\"") == std::string::npos);
    CHECK(stream->closed());
    CHECK(test::eventually([&] { return scene.house.executions.newest()->finished(); }));
    CHECK(scene.house.executions.newest()->view().status == controller::ExecutionStatus::Killed);
}

TEST_CASE("a cancel waits for a slow sandbox in the background, and is tried again",
          "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    std::promise<void> over;
    std::atomic<int> tries{0};
    scene.house.executions.at_kill =
        [&, until = over.get_future().share()](const controller::Principal&) {
            if (++tries > 1) return;
            until.wait_for(std::chrono::seconds(10));
            throw Error(ErrorCode::Deadline, "no answer in time");
        };
    const std::shared_ptr<FakeStream> stream = started(scene.post(runMessage("c")));
    const auto begun = std::chrono::steady_clock::now();
    CHECK(scene
              .post({{"jsonrpc", "2.0"},
                     {"method", "notifications/cancelled"},
                     {"params", {{"requestId", "c"}}}})
              .status == 202);
    stream->until("");
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(9));
    over.set_value();
    CHECK(test::eventually([&] { return scene.house.executions.newest()->finished(); }));
    CHECK(tries == 2);
}

TEST_CASE("only the session that made a call can cancel it", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const api::Response response = scene.post(runMessage(1));
    scene.open();
    scene.post({{"jsonrpc", "2.0"},
                {"method", "notifications/cancelled"},
                {"params", {{"requestId", 1}}}});
    CHECK(scene.house.executions.newest()->view().status == controller::ExecutionStatus::Running);
}

TEST_CASE("a stopping server answers slow calls with their current state", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    FakeRequest request = requestOf("POST", "/mcp", scene.headers, dumpJson(runMessage(1)));
    const api::Response response = scene.surface.handle(request);
    const std::shared_ptr<FakeStream> stream = started(response);
    request.stop.request_stop();
    CHECK(stream->until("").find("running; run_id ex_") != std::string::npos);
    CHECK(scene.house.executions.newest()->view().status == controller::ExecutionStatus::Running);
}

TEST_CASE("a batch with a slow call streams each answer and ends after the last", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open("2025-03-26");
    const api::Response response = scene.post(Json::array({message("ping", 1), runMessage(2)}));
    const std::shared_ptr<FakeStream> stream = started(response);
    CHECK(stream->until("\"id\":1").find("\"result\":{}") != std::string::npos);
    CHECK_FALSE(stream->closed());
    scene.house.executions.newest()->end("ok", 0);
    CHECK(stream->until("").find("\"id\":2") != std::string::npos);
}

}  // namespace hearth::mcp
