#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "api/mcp/seeds/NamedLocks.h"
#include "api/mcp/seeds/http/PlainTools.h"
#include "base/task/Blocking.h"
#include "tests/unit/api/mcp/Scene.h"

// Calls that wait for a sandbox.

namespace hearth::mcp {
namespace {

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

bool eventually(const std::function<bool()>& done) {
    const TimePoint late = SystemClock().now() + std::chrono::seconds(10);
    while (!done() && SystemClock().now() < late) std::this_thread::yield();
    return done();
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

/// Calls without a transport; each makes a claim.
struct Claimants {
    FakeStock stock;
    SystemClock clock;
    std::atomic<int> made{0};
    std::atomic<int> ended{0};  ///< the made ones that were taken back
    ClaimWaiters calls{clock};

    Claimants() { stock.hold(); }
    ~Claimants() { stock.free(); }
    ToolOutcome call(const std::string& tenant) {
        return calls.call(tenant, {make([this] { ++ended; })});
    }
    /// Makes something that `take_back` ends.
    Task<ClaimOutcome> make(std::function<void()> take_back) {
        Task<> taking = stock.take();
        co_await taking;
        ++made;
        ToolResult result = textResult("made");
        result.take_back = std::move(take_back);
        co_return result;
    }
    Task<ClaimOutcome> run(std::shared_ptr<FakeExecution> execution) {
        Task<> taking = stock.take();
        co_await taking;
        PendingCall run;
        run.work = workOf(execution);
        run.finish = [] { return textResult("ran"); };
        run.cancel = [] {};
        co_return run;
    }
    PendingCall pending(const std::string& tenant) { return std::get<PendingCall>(call(tenant)); }
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

TEST_CASE("a wait has no share of the time that a call may keep its worker", "[unit][mcp]") {
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

TEST_CASE("a wait whose HTTP+SSE stream has gone has no caller any more", "[unit][mcp]") {
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

TEST_CASE("what a wait ends with is a result that says what to do", "[unit][mcp]") {
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

TEST_CASE("a server that stops ends the waits at once, in words", "[unit][mcp]") {
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

TEST_CASE("a client of JSON alone waits without a worker, and by hanging up waits no more",
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

TEST_CASE("a tenant has so many calls that wait; beyond them it is told to come again",
          "[unit][mcp]") {
    Claimants scene;
    std::vector<PendingCall> waits;
    for (std::size_t i = 0; i < ClaimWaiters::kMostOfTenant; ++i) {
        waits.push_back(scene.pending("a"));
    }
    REQUIRE(scene.stock.waiting(ClaimWaiters::kMostOfTenant));
    try {
        scene.call("a");
        FAIL("it has waited in its worker");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::RateLimited);
        CHECK(e.retryAfter().has_value());
    }
    waits.push_back(scene.pending("b"));
    REQUIRE(scene.stock.waiting(ClaimWaiters::kMostOfTenant + 1));

    waits.clear();  // the clients have gone: their places become free
    REQUIRE(scene.stock.waiting(0));
    REQUIRE(eventually([&] {
        try {
            const PendingCall again = scene.pending("a");
            return scene.stock.waiting(1);
        } catch (const Error&) {  // a place is not free yet
            return false;
        }
    }));
}

TEST_CASE("tenants with all the calls waiting that they may have leave room for the next",
          "[unit][mcp]") {
    Claimants scene;
    std::vector<PendingCall> waits;
    for (const std::string tenant : {"a", "b", "c", "d"}) {
        for (std::size_t i = 0; i < ClaimWaiters::kMostOfTenant; ++i) {
            try {
                waits.push_back(scene.pending(tenant));
            } catch (const Error& e) {
                CHECK(e.code() == ErrorCode::RateLimited);
                break;
            }
        }
    }
    CHECK(waits.size() < ClaimWaiters::kMost);
    waits.push_back(scene.pending("next"));
    CHECK(scene.stock.waiting(waits.size()));
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
    struct Line {
        static Task<ClaimOutcome> stand() {
            auto line = std::make_shared<InLine>();
            co_await line;
            co_return textResult("made");
        }
    };
    SystemClock clock;
    ClaimWaiters calls(clock);
    const ToolOutcome outcome = calls.call("t", {Line::stand()});
    const auto& call = std::get<PendingCall>(outcome);
    CHECK(call.work->doing().what ==
          "waiting for a sandbox of pool python (place 3 of 7 in line, about 12 s to go)");
    CHECK_FALSE(call.work->finished());
}

TEST_CASE("what was made for a call and was never told is ended, once", "[unit][mcp]") {
    Claimants scene;
    {
        PendingCall unheard = scene.pending("a");
        scene.stock.free();
        REQUIRE(eventually([&] { return unheard.work->finished(); }));
        unheard.cancel();
        unheard.cancel();
        CHECK(scene.ended == 1);
        CHECK_THROWS_AS(unheard.finish(), Error);
    }
    CHECK(scene.ended == 1);

    scene.stock.hold();
    {
        PendingCall heard = scene.pending("a");
        scene.stock.free();
        REQUIRE(eventually([&] { return heard.work->finished(); }));
        CHECK(heard.finish().content[0]["text"] == "made");
        heard.cancel();
    }
    CHECK(scene.ended == 1);

    scene.stock.hold();
    {
        const PendingCall forgotten = scene.pending("a");
        scene.stock.free();
        REQUIRE(eventually([&] { return forgotten.work->finished(); }));
    }
    CHECK(eventually([&] { return scene.ended == 2; }));
}

TEST_CASE("who hangs up does not wait for the end of what was made for it", "[unit][mcp]") {
    Claimants scene;
    std::promise<void> answer;  // the answer of a sandbox
    std::atomic<bool> ended{false};
    {
        const ToolOutcome outcome = scene.calls.call("a", {scene.make([&] {
                                                         answer.get_future().wait();
                                                         ended = true;
                                                     })});
        scene.stock.free();
        REQUIRE(eventually([&] { return std::get<PendingCall>(outcome).work->finished(); }));
    }
    CHECK_FALSE(ended);
    answer.set_value();
    CHECK(eventually([&] { return ended.load(); }));
}

TEST_CASE("a call is either told or ended, however its cancelling falls", "[unit][mcp]") {
    Claimants scene;
    std::atomic<int> told{0};
    for (int round = 0; round < 200; ++round) {
        scene.stock.hold();
        PendingCall call = scene.pending("a");
        REQUIRE(scene.stock.waiting(1));
        std::jthread reader([&] {
            while (!call.work->finished()) std::this_thread::yield();
            try {
                call.finish();
                ++told;
            } catch (const Error&) {  // taken back
            }
        });
        std::jthread canceller([&] { call.cancel(); });
        scene.stock.free();
        reader.join();
        canceller.join();
        REQUIRE(scene.stock.waiting(0));
    }
    CHECK(eventually([&] { return scene.made == told + scene.ended; }));
}

TEST_CASE("a call that became an execution has not finished before it", "[unit][mcp]") {
    Claimants scene;
    for (int round = 0; round < 200; ++round) {
        scene.stock.hold();
        const auto execution = std::make_shared<FakeExecution>(newId("ex_"), "ws_1");
        const ToolOutcome outcome = scene.calls.call("a", {scene.run(execution)});
        const auto& call = std::get<PendingCall>(outcome);
        scene.stock.free();
        bool early = false;
        while (call.work->executionId().empty()) early = early || call.work->finished();
        CHECK_FALSE(early);
        CHECK_FALSE(call.work->finished());
        execution->end("ok", 0);
        CHECK(call.work->finished());
    }
}

TEST_CASE("a turn that does not come is refused, and holds nobody for ever", "[unit][mcp]") {
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
