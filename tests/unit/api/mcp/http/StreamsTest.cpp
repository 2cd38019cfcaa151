#include <catch2/catch.hpp>

#include "tests/unit/api/mcp/Scene.h"

namespace hearth::mcp {
namespace {

/// Returns the path, without its query, that an HTTP+SSE stream names, and the session in it.
std::pair<std::string, std::string> endpointOf(const std::string& sent) {
    const std::size_t begin = sent.find("data: ") + 6;
    const std::string line = sent.substr(begin, sent.find('\n', begin) - begin);
    const std::size_t mark = line.find("?sessionId=");
    return {line.substr(0, mark), line.substr(mark + 11)};
}

api::Response postMessage(Scene& scene, const std::string& session, const Json& body) {
    FakeRequest request =
        requestOf("POST", "/messages?sessionId=" + session, scene.headers, dumpJson(body));
    return scene.surface.handle(request);
}

}  // namespace

TEST_CASE("an answer whose connection broke is fetched with its last event", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    const std::shared_ptr<FakeStream> broken = started(scene.post(runMessage(7)));
    const std::string first = broken->until("notifications/progress");
    REQUIRE(first.starts_with("id: "));
    const std::string id = first.substr(4, first.find('\n') - 4);
    CHECK(id.ends_with("_0"));
    CHECK(first.find("retry: ") != std::string::npos);
    broken->finish();
    CHECK(scene.house.executions.newest()->view().status == controller::ExecutionStatus::Running);

    scene.set("Last-Event-ID", id);
    const std::shared_ptr<FakeStream> again = started(scene.send("GET", ""));
    CHECK(again->until("notifications/progress").find("_1\n") != std::string::npos);
    scene.house.executions.newest()->end("ok", 0);
    CHECK(again->until("").find("\"id\":7,\"result\"") != std::string::npos);
    const std::shared_ptr<FakeStream> late = started(scene.send("GET", ""));
    CHECK(late->until("").find("\"id\":7,\"result\"") != std::string::npos);

    scene.set("Last-Event-ID", "nobody_1");
    CHECK(scene.send("GET", "").status == 400);
    scene.set("Last-Event-ID", id);
    scene.open();  // another session
    CHECK(scene.send("GET", "").status == 400);
}

TEST_CASE("streams of older revisions have no event without data", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open("2025-06-18");
    const std::string sent = started(scene.post(runMessage(7)))->until("notifications/progress");
    CHECK(sent.find("data: \n") == std::string::npos);
    CHECK(sent.starts_with("id: "));
}

TEST_CASE("a session's newest stream alone gets notifications of changes", "[unit][mcp]") {
    Scene scene;
    scene.open();
    const std::shared_ptr<FakeStream> first = started(scene.send("GET", ""));
    const std::shared_ptr<FakeStream> second = started(scene.send("GET", ""));
    CHECK(first->until("").empty());
    CHECK(scene.postJson(message("resources/subscribe", 1, {{"uri", "pool://python"}})) ==
          resultMessage(1, Json::object()));
    scene.surface.notifier().toolsChanged();
    CHECK(second->until("tools/list_changed").find("subscriptionId") == std::string::npos);
    CHECK(scene.send("DELETE", "").status == 204);
    CHECK(second->until("").find("list_changed") != std::string::npos);
    scene.set("Accept", "application/json");
    CHECK(scene.send("GET", "").status == 405);
}

TEST_CASE("HTTP+SSE answers everything on its stream", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    FakeRequest open = requestOf("GET", "/sse", scene.headers);
    const std::shared_ptr<FakeStream> stream = started(scene.surface.handle(open));
    const auto [path, session] = endpointOf(stream->until("endpoint"));
    CHECK(path == "/messages");
    const Json hello = message("initialize", 0, {{"protocolVersion", "2024-11-05"}});
    CHECK(postMessage(scene, session, hello).status == 202);
    CHECK(stream->until("protocolVersion").find("2024-11-05") != std::string::npos);
    CHECK(postMessage(scene, session, runMessage(4)).status == 202);
    scene.house.executions.newest()->end("ok", 0);
    CHECK(stream->until("\"id\":4").find("ok, exit 0") != std::string::npos);
    CHECK_FALSE(stream->closed());
    CHECK(postMessage(scene, "unknown", hello).status == 404);
    stream->finish();
    CHECK(postMessage(scene, session, hello).status == 404);
}

TEST_CASE("a slow run's output comes as log messages where the session asked for them",
          "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.open();
    scene.postJson(message("logging/setLevel", 1, {{"level", "info"}}));
    const std::shared_ptr<FakeStream> stream = started(scene.post(runMessage(7)));
    scene.house.executions.newest()->print("half way\n");
    CHECK(stream->until("half way").find(R"("level":"info")") != std::string::npos);
    scene.house.executions.newest()->end("ok", 0);
    stream->until("");

    Scene other;
    other.keepRunning();
    other.open();
    other.postJson(message("logging/setLevel", 2, {{"level", "error"}}));
    const std::shared_ptr<FakeStream> quiet = started(other.post(runMessage(8)));
    other.house.executions.newest()->print("nobody wants it\n");
    other.house.executions.newest()->end("ok", 0);
    CHECK(quiet->until("").find("notifications/message") == std::string::npos);
}

}  // namespace hearth::mcp
