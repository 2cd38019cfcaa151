#include <atomic>
#include <catch2/catch.hpp>
#include <semaphore>

#include "tests/support/Support.h"
#include "tests/unit/api/mcp/Scene.h"

// One tenant or token cannot take away the share of another.

namespace hearth::mcp {
namespace {

/// A scene with several tokens, which sends requests with one of them at a time.
struct Tenants : Scene {
    Tenants() {
        house.tokens.known = twoTenants();
        as("token-a");
    }
    void as(const std::string& token) { set("Authorization", "Bearer " + token); }
    std::shared_ptr<FakeStream> openEvents() {
        FakeRequest request = requestOf("GET", "/sse", headers);
        return started(surface.handle(request));
    }
    api::Response tell(const std::string& session, const Json& body) {
        FakeRequest request =
            requestOf("POST", "/messages?sessionId=" + session, headers, dumpJson(body));
        return surface.handle(request);
    }
};

std::string sessionOf(const std::string& sent) {
    const std::size_t begin = sent.find("sessionId=") + 10;
    return sent.substr(begin, sent.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("a session belongs to its token, not to its tenant", "[unit][mcp]") {
    Tenants scene;
    scene.open();
    CHECK(scene.post(message("ping", 1)).status == 200);
    scene.as("second-a");
    CHECK(scene.post(message("ping", 1)).status == 404);

    scene.as("token-a");
    const auto stream = scene.openEvents();
    const std::string session = sessionOf(stream->until("endpoint"));
    CHECK(scene.tell(session, message("ping", 1)).status == 202);
    for (const char* other : {"second-a", "token-b"}) {
        scene.as(other);
        CHECK(scene.tell(session, message("ping", 1)).status == 404);
    }
    stream->finish();
}

TEST_CASE("HTTP+SSE takes batches of the revision that has them, of a hundred at most",
          "[unit][mcp]") {
    Tenants scene;
    const auto stream = scene.openEvents();
    const std::string session = sessionOf(stream->until("endpoint"));
    const Json two = Json::array({message("ping", 1), message("ping", 2)});
    scene.tell(session, message("initialize", 0, {{"protocolVersion", "2024-11-05"}}));
    CHECK(scene.tell(session, two).status == 400);
    scene.tell(session, message("initialize", 0, {{"protocolVersion", "2025-03-26"}}));
    CHECK(scene.tell(session, two).status == 202);
    stream->until("\"id\":2");
    Json many = Json::array();
    for (int i = 0; i < 101; ++i) many.push_back(message("ping", i));
    CHECK(scene.tell(session, many).status == 400);
    stream->finish();
}

TEST_CASE("a tenant's running calls are limited, and another tenant's calls go on", "[unit][mcp]") {
    Tenants scene;
    scene.keepRunning();
    scene.open();
    std::vector<std::shared_ptr<FakeStream>> streams;
    for (std::size_t i = 0; i < Scene::kCallsOfTenant; ++i) {
        streams.push_back(started(scene.post(runMessage(static_cast<int>(i)))));
        streams.back()->finish();  // a client that hangs up still has its call in work
    }
    const Json refused = scene.postJson(runMessage(99));
    CHECK(refused["error"]["message"].get<std::string>().find("its share") != std::string::npos);
    scene.as("token-b");
    scene.open();
    CHECK(std::holds_alternative<api::StreamStarter>(scene.post(runMessage(1)).body));
}

TEST_CASE("long ids and URIs of a client are refused, and long progress tokens are dropped",
          "[unit][mcp]") {
    Tenants scene;
    scene.open();
    const std::string much(1'000, 'x');
    CHECK(errorCode(scene.postJson(message("ping", much))) == rpc::kInvalidRequest);
    CHECK(errorCode(scene.postJson(message("resources/subscribe", 1,
                                           {{"uri", "pool://" + much}}))) == rpc::kInvalidParams);
    scene.keepRunning();
    Json call = runMessage(1);
    call["params"]["_meta"]["progressToken"] = much;
    const auto stream = started(scene.post(call));
    scene.house.executions.newest()->end("ok", 0);
    CHECK(stream->until("\"id\":1").find(much) == std::string::npos);
}

TEST_CASE("a call whose cancel fails does not affect other calls", "[unit][mcp]") {
    Tenants scene;
    scene.keepRunning();
    scene.house.executions.refuse_kill = Error(ErrorCode::SandboxLost, "it has just gone");
    Json call = runMessage(1);
    call["params"]["_meta"][envelope::kVersion] = "2026-07-28";
    call["params"]["_meta"][envelope::kCapabilities] = Json::object();
    scene.set("MCP-Protocol-Version", "2026-07-28");
    scene.set("Mcp-Method", "tools/call");
    scene.set("Mcp-Name", "run");
    for (int i = 0; i < 3; ++i) started(scene.post(call))->finish();
    const auto stream = started(scene.post(call));
    scene.house.executions.endAll("ok", 0);
    stream->until("\"result\"");
}

TEST_CASE("slow cancels of one tenant delay no cancel of another", "[unit][mcp]") {
    constexpr int kSlow = 9;
    std::counting_semaphore gate(0);
    std::atomic<int> of_b{0};
    Tenants scene;
    // Opens the gate before the scene ends: threads of the scene wait at it.
    const std::unique_ptr<void, std::function<void(void*)>> opening(
        &gate, [&](void*) { gate.release(kSlow); });
    scene.keepRunning();
    scene.house.executions.at_kill = [&](const controller::Principal& who) {
        if (who.tenant == "a") gate.acquire();
        if (who.tenant == "b") ++of_b;
    };
    const Json call =
        modern(scene, "tools/call", 1, {{"name", "run"}, {"arguments", {{"command", "x"}}}});
    for (int i = 0; i < kSlow; ++i) started(scene.post(call))->finish();
    scene.as("token-b");
    started(scene.post(call))->finish();
    CHECK(test::eventually([&] { return of_b == 1; }));
}

TEST_CASE("an answer has one reader: the last", "[unit][mcp]") {
    Tenants scene;
    scene.keepRunning();
    scene.open();
    const auto first = started(scene.post(runMessage(7)));
    const std::string sent = first->until("notifications/progress");
    scene.set("Last-Event-ID", sent.substr(4, sent.find('\n') - 4));
    const auto second = started(scene.send("GET", ""));
    CHECK(first->closed());
    const auto third = started(scene.send("GET", ""));
    CHECK(second->closed());
    scene.house.executions.newest()->end("ok", 0);
    third->until("\"id\":7,\"result\"");
}

TEST_CASE("subscriptions of one tenant displace none of another", "[unit][mcp]") {
    Tenants scene;
    scene.as("token-b");
    scene.open();
    const auto stream = started(scene.send("GET", ""));
    scene.post(message("resources/subscribe", 1, {{"uri", "pool://python"}}));
    scene.as("token-a");
    ChangeNotifier& notifier = scene.surface.notifier();
    for (std::size_t i = 0; i < 2 * ChangeNotifier::kMaxSessions; ++i) {
        notifier.subscribe({"a", controller::Role::User, ""}, std::to_string(i), "pool://python");
    }
    scene.house.events.happen({.type = "pool.warm", .pool = "python"});
    stream->until("pool://python");
}

}  // namespace hearth::mcp
