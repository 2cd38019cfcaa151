#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "api/mcp/seeds/NamedLocks.h"
#include "api/mcp/seeds/http/PlainTools.h"
#include "base/task/Blocking.h"
#include "tests/support/Support.h"
#include "tests/unit/api/mcp/Scene.h"

// Calls that wait for a sandbox.

namespace hearth::mcp {
namespace {

using test::eventually;

Json openMessage(Json id, Json arguments = Json::object()) {
    return message("tools/call", std::move(id),
                   {{"name", "workspace_open"}, {"arguments", std::move(arguments)}});
}

Json cancellation(Json id) {
    return {{"jsonrpc", "2.0"},
            {"method", "notifications/cancelled"},
            {"params", {{"requestId", std::move(id)}}}};
}

std::size_t openOnes(Scene& scene) {
    return scene.house.workspaces.list({"default", controller::Role::Admin, ""}, {}).items.size();
}

/// A client's side of a suspended answer.
struct Suspended {
    explicit Suspended(api::Response response)
        : suspension(std::get<api::Suspension>(std::move(response.body))) {
        subscription = suspension.subscribe([] {});
    }
    Json answer() {
        REQUIRE(eventually(suspension.ready));
        const auto resume = std::exchange(suspension.resume, {});
        return parseJson(std::get<std::string>(resume().body));
    }

    api::Suspension suspension;
    std::shared_ptr<void> subscription;
};

}  // namespace

TEST_CASE("a run that waits for a sandbox streams, and goes on as its execution", "[unit][mcp]") {
    Scene scene;
    scene.keepRunning();
    scene.house.stock.hold();
    scene.open();
    scene.postJson(message("logging/setLevel", 1, {{"level", "info"}}));
    const api::Response response = scene.post(runMessage(7));
    CHECK(response.keepalive == ": keepalive\n\n");
    const std::shared_ptr<FakeStream> stream = started(response);
    stream->until("waiting for a sandbox of pool python for");
    REQUIRE(scene.house.stock.waiting(1));
    scene.house.stock.free();
    REQUIRE(eventually([&] { return scene.house.executions.newest() != nullptr; }));
    const auto execution = scene.house.executions.newest();
    execution->print("half way\n");
    CHECK(stream->until("half way").find(execution->id()) != std::string::npos);
    execution->end("ok", 0);
    const std::string sent = stream->until("");
    CHECK(sent.find("\"id\":7,\"result\"") != std::string::npos);
    CHECK(sent.find("ok, exit 0") != std::string::npos);
}

TEST_CASE("a wait does not count as time that a call may keep its worker", "[unit][mcp]") {
    Scene scene(std::chrono::hours(1));
    scene.house.stock.hold();
    scene.open();
    const std::shared_ptr<FakeStream> stream = started(scene.post(openMessage(1)));
    REQUIRE(scene.house.stock.waiting(1));
    scene.house.stock.free();
    CHECK(stream->until("").find("ws_") != std::string::npos);
    CHECK(openOnes(scene) == 1);
}

TEST_CASE("a wait that is cancelled leaves the line at once and gets no answer", "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    scene.open();
    for (const Json& call : {runMessage("w"), openMessage("w")}) {
        const std::shared_ptr<FakeStream> stream = started(scene.post(call));
        REQUIRE(scene.house.stock.waiting(1));
        CHECK(scene.post(cancellation("w")).status == 202);
        CHECK(scene.house.stock.waiting(0));
        CHECK(stream->until("").find("\"result\"") == std::string::npos);
    }
    scene.house.stock.free();
    CHECK(scene.house.executions.newest() == nullptr);
    CHECK(openOnes(scene) == 0);
}

TEST_CASE("a modern client that hangs up while it waits leaves the line", "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    Json call = runMessage(1);
    call["params"]["_meta"][envelope::kVersion] = "2026-07-28";
    call["params"]["_meta"][envelope::kCapabilities] = Json::object();
    scene.set("MCP-Protocol-Version", "2026-07-28");
    scene.set("Mcp-Method", "tools/call");
    scene.set("Mcp-Name", "run");
    const std::shared_ptr<FakeStream> stream = started(scene.post(call));
    REQUIRE(scene.house.stock.waiting(1));
    stream->finish();
    CHECK(scene.house.stock.waiting(0));
}

TEST_CASE("a session's client that hangs up while it waits fetches its answer later",
          "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    scene.open();
    const std::shared_ptr<FakeStream> broken = started(scene.post(runMessage(7)));
    const std::string first = broken->until("waiting for");
    REQUIRE(scene.house.stock.waiting(1));
    broken->finish();
    scene.set("Last-Event-ID", first.substr(4, first.find('\n') - 4));
    const std::shared_ptr<FakeStream> again = started(scene.send("GET", ""));
    again->until("waiting for");
    CHECK(scene.house.stock.waiting(1));
    scene.house.stock.free();
    CHECK(again->until("").find("ok, exit 0") != std::string::npos);
}

TEST_CASE("a wait is cancelled when its HTTP+SSE stream has gone", "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    FakeRequest open = requestOf("GET", "/sse", scene.headers);
    const std::shared_ptr<FakeStream> stream = started(scene.surface.handle(open));
    const std::string sent = stream->until("endpoint");
    const std::size_t at = sent.find("sessionId=") + 10;
    const std::string session = sent.substr(at, sent.find('\n', at) - at);
    FakeRequest request =
        requestOf("POST", "/messages?sessionId=" + session, scene.headers, dumpJson(runMessage(4)));
    CHECK(scene.surface.handle(request).status == 202);  // its worker is free again
    stream->until("waiting for a sandbox");
    stream->finish();
    CHECK(scene.house.stock.waiting(0));
}

TEST_CASE("a wait that fails gives an error result with a hint", "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    scene.open();
    const std::shared_ptr<FakeStream> stream = started(scene.post(runMessage(7)));
    REQUIRE(scene.house.stock.waiting(1));
    scene.house.stock.free(Error(ErrorCode::PoolExhausted, "no free sandbox").hint("close some"));
    const std::string sent = stream->until("");
    CHECK(sent.find("\"isError\":true") != std::string::npos);
    CHECK(sent.find("close some") != std::string::npos);
}

TEST_CASE("a server that stops ends all waits at once with a message", "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    scene.open();
    FakeRequest request = requestOf("POST", "/mcp", scene.headers, dumpJson(runMessage(1)));
    const std::shared_ptr<FakeStream> stream = started(scene.surface.handle(request));
    REQUIRE(scene.house.stock.waiting(1));
    request.stop.request_stop();
    const std::string sent = stream->until("");
    CHECK(sent.find("\"isError\":true") != std::string::npos);
    CHECK(sent.find("UNAVAILABLE") != std::string::npos);
    CHECK(sent.find("shutting down") != std::string::npos);
    CHECK(scene.house.stock.waiting(0));
}

TEST_CASE("a client that accepts only JSON waits without a worker, and leaves by hanging up",
          "[unit][mcp]") {
    Scene scene;
    scene.house.stock.hold();
    scene.open();
    scene.set("Accept", "application/json");
    FakeRequest request = requestOf("POST", "/mcp", scene.headers, dumpJson(openMessage(1)));
    {
        Suspended gone(scene.surface.handle(request));
        REQUIRE(scene.house.stock.waiting(1));
        CHECK_FALSE(gone.suspension.ready());
    }
    CHECK(scene.house.stock.waiting(0));
    Suspended waits(scene.surface.handle(request));
    REQUIRE(scene.house.stock.waiting(1));
    scene.house.stock.free();
    const Json result = waits.answer()["result"];
    CHECK(result["content"][0]["text"].get<std::string>().starts_with("ws_"));
    CHECK(openOnes(scene) == 1);
}

TEST_CASE("a tool without MCP waits for its sandbox without a worker", "[unit][mcp]") {
    FakeServices house;
    house.stock.hold();
    const auth::Authenticator authenticator{house.tokens};
    const auth::WorkerShares shares{8};
    const auth::RateLimits limits{0, 0, house.clock};
    PlainTools tools(house.services, authenticator, shares, limits);
    FakeRequest request = requestOf("POST", "/mcp/tools/create_sandbox");
    Suspended waits(tools.handle(request));
    REQUIRE(house.stock.waiting(1));
    house.stock.free();
    CHECK(waits.answer()["status"] == "active");

    house.stock.hold();
    Suspended refused(tools.handle(request));
    REQUIRE(house.stock.waiting(1));
    house.stock.free(Error(ErrorCode::PoolExhausted, "no free sandbox"));
    REQUIRE(eventually(refused.suspension.ready));
    CHECK_THROWS_AS(refused.suspension.resume(), Error);
}

TEST_CASE("calls of one name wait for each other's turn without a worker", "[unit][mcp]") {
    FakeServices house;
    house.stock.hold();
    const auth::Authenticator authenticator{house.tokens};
    const auth::WorkerShares shares{8};
    const auth::RateLimits limits{0, 0, house.clock};
    PlainTools tools(house.services, authenticator, shares, limits);
    FakeRequest request = requestOf("POST", "/mcp/tools/create_sandbox",
                                    {{"Content-Type", "application/json"}}, R"({"name": "mine"})");
    Suspended first(tools.handle(request));
    REQUIRE(house.stock.waiting(1));
    Suspended second(tools.handle(request));
    house.stock.free();
    CHECK(first.answer()["sandbox_name"] == "mine");
    REQUIRE(eventually(second.suspension.ready));
    try {
        second.suspension.resume();
        FAIL("two of one name");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::Conflict);
    }
}

TEST_CASE("a tenant's waiting calls are limited, and further calls are told to retry",
          "[unit][mcp]") {
    Scene scene(std::chrono::milliseconds(0), 2 * kMostWaiting);
    scene.house.stock.hold();
    scene.house.tokens.known = twoTenants();
    scene.set("Authorization", "Bearer token-a");
    scene.open();
    std::vector<std::shared_ptr<FakeStream>> waits;
    for (std::size_t i = 0; i < kMostWaitingOfTenant; ++i) {
        waits.push_back(started(scene.post(openMessage(static_cast<int>(i)))));
    }
    REQUIRE(scene.house.stock.waiting(kMostWaitingOfTenant));
    const Json refused = scene.postJson(openMessage("more"))["result"];
    CHECK(refused["isError"] == true);
    CHECK(refused.dump().find("the most that a tenant may have") != std::string::npos);

    scene.set("Authorization", "Bearer token-b");
    scene.open();
    waits.push_back(started(scene.post(openMessage(0))));
    REQUIRE(scene.house.stock.waiting(kMostWaitingOfTenant + 1));
    scene.house.stock.free();
    for (const auto& stream : waits) CHECK(stream->until("").find("ws_") != std::string::npos);
    CHECK(std::get<std::string>(scene.post(openMessage(0)).body).find("ws_") != std::string::npos);
}

TEST_CASE("progress of a wait tells its place in line and how long it takes", "[unit][mcp]") {
    class InLine final : public Waitable {
    public:
        bool ready() const override { return false; }
        std::shared_ptr<void> subscribe(std::function<void()> /*wake*/) override { return nullptr; }
        std::optional<Progress> progress() const override {
            return Progress{"a sandbox of pool python", 3, 7, std::chrono::seconds(12)};
        }
    };
    CHECK(describe(InLine()) ==
          "a sandbox of pool python (place 3 of 7 in line, about 12 s to go)");
}

TEST_CASE("a cancel frees the worker that waits for a run", "[unit][mcp]") {
    Scene scene(std::chrono::hours(1));
    scene.house.executions.behave = [](const auto&,
                                       const std::shared_ptr<FakeExecution>& execution) {
        execution->patient = true;
    };
    scene.open();
    std::jthread caller([&] { started(scene.post(runMessage("c"))); });
    REQUIRE(eventually([&] { return scene.house.executions.newest() != nullptr; }));
    CHECK(eventually([&] {
        scene.post(cancellation("c"));
        return scene.house.executions.newest()->finished();
    }));
}

TEST_CASE("a wait for a turn is refused at its deadline", "[unit][mcp]") {
    const SystemClock clock;
    seeds::NamedLocks turns;
    const auto take = [&](const char* key) {
        return resultOf(turns.take(key, clock.now() + std::chrono::milliseconds(1)), clock);
    };
    std::shared_ptr<void> held = take("k");
    try {
        take("k");
        FAIL("two have the same turn");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unavailable);
        CHECK(e.retryAfter().has_value());
    }
    CHECK_NOTHROW(take("another"));
    held.reset();
    CHECK_NOTHROW(take("k"));
}

}  // namespace hearth::mcp
