#include <atomic>
#include <thread>

#include "controller/workspaces/Pauser.h"
#include "tests/support/House.h"
#include "tests/unit/controller/Principals.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

PoolSpec pausingSpec() {
    PoolSpec spec = smallSpec(1);
    spec.idle_timeout = 100s;
    spec.max_lifetime = 1h;
    spec.on_idle = OnIdle::Pause;
    return spec;
}

struct Pausing : Ground {
    House house{*this};
    std::string id;
    std::string sandbox;

    explicit Pausing(const PoolSpec& spec = pausingSpec()) {
        house.declare("p", spec);
        REQUIRE(house.filled("p", 1));
        const WorkspaceView view = house.open(kTenant, House::request());
        id = view.id;
        sandbox = view.sandbox_id;
    }

    void sweepAfter(std::chrono::seconds time) {
        manual.advance(time);
        house.reclaimer.sweep();
        house.loop.settle();
    }
    void keepResults() {
        const auto workspace = house.table.find(id);
        REQUIRE(house.settleUntil(
            [&] { return workspace->running() == 0 && workspace->awaitResults(0ms); }));
    }
    WorkspacePhase phase() { return house.workspaces.get(kTenant, id).phase; }
    bool frozen() const { return runtime.frozen().contains(sandbox); }
    std::vector<std::string> events() {
        std::vector<std::string> out;
        for (const Event& event : house.events.list(kTenant, {0, "", id})) {
            out.push_back(event.type + " " + event.reason);
        }
        return out;
    }
    std::shared_ptr<Execution> run(const std::string& command) {
        ExecutionRequest request;
        request.command = command;
        return house.executions.start(kTenant, id, request);
    }
};

}  // namespace

TEST_CASE("an idle workspace is paused, read without a call, and resumed by the next call",
          "[unit][controller]") {
    Pausing p;
    p.sweepAfter(99s);
    CHECK(p.phase() == WorkspacePhase::Active);
    p.sweepAfter(2s);
    CHECK(p.phase() == WorkspacePhase::Paused);
    CHECK(p.frozen());
    CHECK(p.house.workspaces.list(kTenant, {}).items.size() == 1);
    CHECK(p.frozen());
    p.sweepAfter(1000s);
    CHECK(p.frozen());
    CHECK(p.events() ==
          std::vector<std::string>{"workspace.created claimed", "workspace.paused idle"});

    CHECK(p.run("echo hi")->wait(5s));
    p.keepResults();
    CHECK_FALSE(p.frozen());
    CHECK(p.phase() == WorkspacePhase::Active);
    CHECK(p.events().back() == "workspace.resumed called");
    p.sweepAfter(99s);
    CHECK(p.phase() == WorkspacePhase::Active);
    p.sweepAfter(2s);
    CHECK(p.phase() == WorkspacePhase::Paused);
    const std::string told = p.house.metrics.render();
    CHECK(told.find("hearth_pauses_total{pool=\"p\"} 2") != std::string::npos);
    CHECK(told.find("hearth_resume_seconds_count{pool=\"p\"} 1") != std::string::npos);
    p.sweepAfter(0s);
    CHECK(p.house.metrics.render().find("hearth_paused_workspaces{pool=\"p\"} 1") !=
          std::string::npos);
}

TEST_CASE("a workspace with a running execution is not frozen", "[unit][controller]") {
    Pausing p;
    ExecutionRequest request;
    request.command = "sleep 900";
    request.background = true;
    const auto running = p.house.executions.start(kTenant, p.id, request);
    p.sweepAfter(800s);
    CHECK(p.phase() == WorkspacePhase::Active);
    p.manual.advance(101s);
    REQUIRE(p.house.settleUntil([&] { return running->finished(); }));
    p.keepResults();
    p.sweepAfter(101s);
    // The agent is asked later to forget the execution. It is not resumed for that.
    CHECK(p.phase() == WorkspacePhase::Paused);
    p.sweepAfter(10s);
    CHECK(p.phase() == WorkspacePhase::Paused);
}

TEST_CASE("a paused workspace ends by its lifetime, by its owner and with its pool",
          "[unit][controller]") {
    for (const char* by : {"lifetime", "deleted", "drain"}) {
        Pausing p;
        p.sweepAfter(101s);
        REQUIRE(p.frozen());
        p.sweepAfter(0s);
        REQUIRE(p.house.metrics.render().find("hearth_paused_workspaces{pool=\"p\"} 1") !=
                std::string::npos);
        const std::string how = by;
        if (how == "deleted") p.house.workspaces.close(kTenant, p.id);
        if (how == "drain") {
            for (const auto& workspace : p.house.table.all()) {
                p.house.terminator.end(workspace, EndReason::Drain);
            }
        }
        p.sweepAfter(how == "lifetime" ? 1h : 1s);
        CHECK(p.events().back() == "workspace.reclaimed " + how);
        CHECK(p.house.settleUntil([&] { return !p.runtime.find(p.sandbox); }));
        CHECK(p.runtime.frozen().empty());
        p.sweepAfter(0s);
        CHECK(p.house.metrics.render().find("hearth_paused_workspaces{pool=\"p\"} 1") ==
              std::string::npos);
    }
}

TEST_CASE(
    "a sandbox that cannot be frozen is reclaimed, and a runtime that cannot refuses the pool",
    "[unit][controller]") {
    Pausing p;
    p.runtime.failFreezes();
    p.sweepAfter(101s);
    CHECK(p.events().back() == "workspace.reclaimed idle");

    Ground ground;
    ground.runtime.failFreezes();
    House house(ground);
    try {
        house.pools.create(house.who, poolDocument("p", pausingSpec()));
        FAIL("it was taken");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::InvalidSpec);
        REQUIRE(e.fields().size() == 1);
        CHECK(e.fields()[0].pointer == "/spec/lifecycle/onIdle");
    }
    CHECK_FALSE(house.specs.find("p"));
}

TEST_CASE("a server that begins while workspaces are paused resumes them to ask, and has them all",
          "[unit][controller]") {
    Ground ground;
    std::string id;
    std::string sandbox;
    {
        House house(ground);
        house.declare("p", pausingSpec());
        REQUIRE(house.filled("p", 1));
        const WorkspaceView view = house.open(kTenant, House::request());
        id = view.id;
        sandbox = view.sandbox_id;
        ground.manual.advance(101s);
        house.reclaimer.sweep();
        house.loop.settle();
        REQUIRE(ground.runtime.frozen().contains(sandbox));
    }
    ground.manual.advance(500s);
    House house(ground);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.silent.empty());
    CHECK_FALSE(ground.runtime.frozen().contains(sandbox));
    house.reclaimer.sweep();
    house.loop.settle();
    CHECK(house.workspaces.get(kTenant, id).phase == WorkspacePhase::Paused);
    CHECK(house.workspaces.touch(kTenant, id).phase == WorkspacePhase::Active);
}

TEST_CASE("a paused workspace whose connection ends is no suspect", "[unit][controller]") {
    Pausing p;
    p.sweepAfter(101s);
    REQUIRE(p.frozen());
    p.runtime.sever(p.sandbox);
    CHECK(p.house.settleUntil([&] {
        const auto workspace = p.house.table.find(p.id);
        return workspace && workspace->answeredAt() != TimePoint{} && !workspace->silentSince();
    }));
    CHECK(p.run("echo hi")->wait(5s));
    for (const std::string& event : p.events()) {
        CHECK(event.find("suspect") == std::string::npos);
    }
}

TEST_CASE("a one shot is never paused", "[unit][controller]") {
    Pausing p;
    WorkspaceRequest request = House::request();
    REQUIRE(p.house.filled("p", 1));
    ExecutionRequest run;
    run.command = "echo hi";
    const auto shot = p.house.runOnce(kTenant, request, run);
    CHECK_FALSE(p.house.table.all().empty());
    for (const auto& workspace : p.house.table.all()) {
        if (workspace->facts().one_shot) CHECK_FALSE(workspace->facts().pause_when_idle);
    }
}

TEST_CASE("10,000 calls that race with pauses are never lost and never meet a frozen sandbox",
          "[unit][controller]") {
    PoolSpec spec = pausingSpec();
    spec.max_lifetime = 0ms;
    Pausing p(spec);
    constexpr unsigned kCalls = 5000;
    std::atomic<unsigned> answered{0};
    std::atomic<unsigned> frozen_calls{0};
    std::atomic<bool> done{false};
    const auto workspace = p.house.table.find(p.id);
    {
        const std::jthread pausing([&] {
            while (!done) {
                p.manual.advance(200s);
                p.house.pauser.pause(p.id);
            }
        });
        std::vector<std::jthread> callers;
        for (unsigned i = 0; i < 2; ++i) {
            callers.emplace_back([&] {
                for (unsigned call = 0; call < kCalls; ++call) {
                    const Awake held = p.house.access.awake(workspace);
                    if (p.frozen()) ++frozen_calls;
                    workspace->touch(p.clock.now());
                    ++answered;
                }
            });
        }
        callers.clear();
        done = true;
    }
    CHECK(answered == 2 * kCalls);
    CHECK(frozen_calls == 0);
    CHECK(workspace->active());
    CHECK(p.house.workspaces.touch(kTenant, p.id).phase == WorkspacePhase::Active);
}
