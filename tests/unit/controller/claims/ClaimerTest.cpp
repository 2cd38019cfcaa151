#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "controller/claims/Claimer.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// Returns the request of the service, except the claim's id. `request` must outlive it.
Claimer::Wanted wantedIn(House& house, const WorkspaceRequest& request) {
    Claimer::Wanted wanted;
    wanted.pool = house.specs.find("p");
    wanted.workspace_id = newId("ws_");
    wanted.request = &request;
    wanted.tenant = "default";
    return wanted;
}

Claimer::Claimed claimOnce(House& house, const Claimer::Wanted& wanted) {
    return resultOf(house.claimer.claim({wanted}), house.clock).front();
}

}  // namespace

TEST_CASE("a claim takes a warm sandbox, and the pool is refilled after it", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const WorkspaceView view = house.open(house.who, House::request());
    CHECK(view.phase == WorkspacePhase::Active);
    REQUIRE(view.claim);
    CHECK(house.marks.exists(view.sandbox_id));
    CHECK(house.warm.find(view.sandbox_id)->phase == pool::Phase::Claimed);
    ground.manual.advance(3ms);
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 2);
    CHECK(house.warm.counts("p").claimed == 1);
    CHECK(house.journal.workspace(view.id));
    house.workspaces.close(house.who, view.id);
    house.loop.settle();
    CHECK_FALSE(house.marks.exists(view.sandbox_id));
    CHECK_FALSE(house.warm.find(view.sandbox_id));
    const Error gone = errorOf([&] { house.workspaces.get(house.who, view.id); });
    CHECK(gone.code() == ErrorCode::Gone);
    CHECK(gone.endedReason() == "deleted");
}

TEST_CASE("a ready sandbox has a higher CPU weight until shortly after its claim",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    CHECK(ground.runtime.first().size() == 2);
    const std::string claimed = house.open(house.who, House::request()).sandbox_id;
    CHECK(ground.runtime.first().contains(claimed));  // not changed during the claim
    ground.manual.advance(10ms);
    house.loop.settle();
    CHECK_FALSE(ground.runtime.first().contains(claimed));
    REQUIRE(house.filled("p", 2));
    CHECK(ground.runtime.first().size() == 2);
}

TEST_CASE("the same key gives the same workspace until it has ended", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(3));
    REQUIRE(house.filled("p", 3));
    const WorkspaceView first = house.open(house.who, House::request("k"));
    const WorkspaceView again = house.open(house.who, House::request("k"));
    CHECK(again.id == first.id);
    CHECK(again.replayed);
    CHECK_FALSE(first.replayed);
    CHECK_FALSE(again.claim);
    CHECK(codeOf([&] { house.open(house.who, House::request("k", "other")); }) ==
          ErrorCode::IdempotencyMismatch);
    const Principal other{"other", Role::User, ""};
    CHECK(house.open(other, House::request("k", "other")).id != first.id);
    house.workspaces.close(house.who, first.id);
    house.loop.settle();
    CHECK(codeOf([&] { house.open(house.who, House::request("k")); }) == ErrorCode::Gone);
    CHECK(codeOf([&] { house.open(house.who, House::request("k", "other")); }) ==
          ErrorCode::IdempotencyMismatch);
}

TEST_CASE("a sandbox that died unnoticed is passed over", "[unit][controller]") {
    Ground ground;
    House house(ground);
    std::vector<std::string> order;  // the order in which they became ready and are claimed
    for (std::uint32_t size = 1; size <= 3; ++size) {
        house.declare("p", smallSpec(size));
        REQUIRE(house.filled("p", size));
        for (const pool::Member& member : house.warm.members("p")) {
            if (std::find(order.begin(), order.end(), member.id) == order.end()) {
                order.push_back(member.id);
            }
        }
    }
    ground.runtime.hang(order[0]);  // it cannot report that it hangs
    ground.runtime.kill(order[1]);
    const WorkspaceView view = house.open(house.who, House::request());
    CHECK(view.sandbox_id == order[2]);
    REQUIRE(house.settleUntil([&] { return house.warm.counts("p").ready == 3; }));
    CHECK_FALSE(house.warm.find(order[1]));
    CHECK(house.table.all().size() == 1);
    const auto a = house.table.reserve("default", "p", 3);  // the claim holds only one place
    CHECK_NOTHROW(house.table.reserve("default", "p", 3));
}

TEST_CASE("the death of a claimed sandbox ends its workspace as lost", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    ground.runtime.kill(view.sandbox_id);
    REQUIRE(house.settleUntil([&] { return !house.table.find(view.id); }));
    CHECK(errorOf([&] { house.workspaces.get(house.who, view.id); }).endedReason() == "lost");
    CHECK(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
}

TEST_CASE("an idle workspace is reclaimed and a touched one is not", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(2);
    spec.idle_timeout = 10s;
    spec.max_lifetime = 60s;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    const WorkspaceView idle = house.open(house.who, House::request());
    const WorkspaceView busy = house.open(house.who, House::request());
    ground.manual.advance(6s);
    house.workspaces.touch(house.who, busy.id);
    ground.manual.advance(5s);
    house.reclaimer.sweep();
    CHECK(errorOf([&] { house.workspaces.get(house.who, idle.id); }).endedReason() == "idle");
    CHECK(house.workspaces.get(house.who, busy.id).phase == WorkspacePhase::Active);
    for (int i = 0; i < 10; ++i) {
        ground.manual.advance(6s);
        if (!house.table.find(busy.id)) break;
        house.workspaces.touch(house.who, busy.id);
        house.reclaimer.sweep();
    }
    CHECK(errorOf([&] { house.workspaces.get(house.who, busy.id); }).endedReason() == "lifetime");
}

TEST_CASE("a tenant gets all of its quota at once, and no more", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(10);
    spec.per_tenant = 8;
    house.declare("p", spec);
    for (int round = 0; round < 10; ++round) {
        REQUIRE(house.filled("p", 10));
        std::atomic<int> refused{0};
        std::mutex mutex;
        std::vector<std::string> ids;
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < 8; ++i) {
                threads.emplace_back([&] {
                    try {
                        const WorkspaceView view = house.open(house.who, House::request());
                        const std::lock_guard lock(mutex);
                        ids.push_back(view.id);
                    } catch (const Error&) {
                        ++refused;
                    }
                });
            }
        }
        CHECK(refused == 0);
        CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::QuotaExceeded);
        for (const std::string& id : ids) house.workspaces.close(house.who, id);
    }
}

TEST_CASE("a thousand claims of many threads never share a sandbox", "[unit][controller]") {
    constexpr int kThreads = 32;
    constexpr int kClaims = 1000;
    SystemClock clock;
    Ground ground(&clock);
    House house(ground);
    PoolSpec spec = smallSpec(40);
    spec.warm_max = 100;
    spec.parallel_creates = 16;
    spec.max_members = 1000;
    spec.per_tenant = 1000;
    spec.max_queue = 1000;
    house.declare("p", spec);
    house.loop.start();
    std::atomic<int> next{0};
    std::mutex mutex;
    std::set<std::string> sandboxes;
    std::vector<std::string> failures;
    int twice = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < kThreads; ++i) {
            threads.emplace_back([&] {
                while (next++ < kClaims) {
                    try {
                        const WorkspaceView view = house.open(house.who, House::request());
                        {
                            const std::lock_guard lock(mutex);
                            if (!sandboxes.insert(view.sandbox_id).second) ++twice;
                        }
                        house.workspaces.close(house.who, view.id);
                    } catch (const std::exception& e) {
                        const std::lock_guard lock(mutex);
                        failures.emplace_back(e.what());
                    }
                }
            });
        }
    }
    CHECK(twice == 0);
    INFO((failures.empty() ? std::string() : failures.front()));
    CHECK(failures.empty());
    CHECK(sandboxes.size() == kClaims);
    CHECK(house.table.all().empty());
    CHECK(house.metrics.render().find("hearth_double_bind_refused_total 0") != std::string::npos);
    CHECK(eventually([&] { return house.warm.counts("p").claimed == 0; }));
    house.loop.stop();
}

TEST_CASE("a claim that no sandbox would accept takes no sandbox", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(3));
    REQUIRE(house.filled("p", 3));
    const auto refused = [&](const WorkspaceRequest& request) {
        const Error error = errorOf([&] { house.open(house.who, request); });
        house.loop.settle();
        CHECK(house.warm.counts("p").ready == 3);
        CHECK(house.warm.counts("p").claimed == 0);
        return error;
    };
    const auto field = [&](const WorkspaceRequest& request) {
        const Error error = refused(request);
        CHECK(error.code() == ErrorCode::InvalidArgument);
        return error.fields().empty() ? std::string() : error.fields().front().pointer;
    };
    WorkspaceRequest large = House::request();
    for (int i = 0; i < 10; ++i) large.env["V" + std::to_string(i)] = std::string(32'000, 'x');
    CHECK(refused(large).code() == ErrorCode::PayloadTooLarge);
    WorkspaceRequest escaped = House::request();  // six bytes per character on the wire
    for (const char* name : {"A", "B"}) escaped.secrets[name] = std::string(32'000, '\x01');
    CHECK(refused(escaped).code() == ErrorCode::PayloadTooLarge);

    WorkspaceRequest request = House::request();
    request.env = {{"A/B=~", "x"}};
    CHECK(field(request) == "/env/A~1B=~0");
    request.env = {{"A", std::string("\0", 1)}};
    CHECK(field(request) == "/env/A");
    request.env.clear();
    for (int i = 0; i < 129; ++i) request.env["V" + std::to_string(i)] = "";
    CHECK(field(request) == "/env");
    request.env.clear();
    request.secrets = {{"1A", "x"}};
    CHECK(field(request) == "/secrets/1A");
    request.secrets.clear();
    for (const std::string& name : {std::string(70'000, 'n'), std::string("a\x1b[31m")}) {
        request.name = name;
        CHECK(field(request) == "/name");
    }
    request.name.reset();
    for (int i = 0; i < 65; ++i) request.labels["l" + std::to_string(i)] = "";
    CHECK(field(request) == "/labels");
    request.labels.clear();
    CHECK(house.open(house.who, request).phase == WorkspacePhase::Active);
}

TEST_CASE("a claim that a sandbox refuses as invalid is not tried on another",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(3));
    REQUIRE(house.filled("p", 3));
    const WorkspaceRequest request = House::request();
    // The claim has no id, so the agent refuses it.
    const Claimer::Wanted wanted = wantedIn(house, request);
    CHECK(codeOf([&] { claimOnce(house, wanted); }) == ErrorCode::InvalidArgument);
    CHECK(house.warm.counts("p").ready == 2);
    CHECK(house.warm.counts("p").claimed == 0);
}

TEST_CASE("a sandbox that lacks the claim's language goes back to its pool", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    WorkspaceRequest request = House::request();
    request.language = "klingon";
    Claimer::Wanted wanted = wantedIn(house, request);
    wanted.claim_id = newId("cl_");
    CHECK(codeOf([&] { claimOnce(house, wanted); }) == ErrorCode::InvalidSpec);
    CHECK(house.warm.counts("p").ready == 2);
    CHECK(house.table.all().empty());
    request.language = "py";  // the image has python
    CHECK(claimOnce(house, wanted).workspace);
}

TEST_CASE("a claim that fails in any other way leaves no sandbox claimed", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(3));
    REQUIRE(house.filled("p", 3));
    const WorkspaceRequest request = House::request();
    Claimer::Wanted wanted = wantedIn(house, request);
    wanted.claim_id = newId("cl_");
    const auto first = claimOnce(house, wanted).workspace;
    CHECK(codeOf([&] { claimOnce(house, wanted); }) == ErrorCode::Conflict);  // it exists
    CHECK(house.table.find(wanted.workspace_id) == first);
    CHECK(house.warm.counts("p").claimed == 1);
    CHECK(house.warm.counts("p").ready == 1);
    const auto a = house.table.reserve("default", "p", 2);  // the failed claim holds no place
}

TEST_CASE("a workspace never exceeds its limit of labels, however often it is changed",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const std::string id = house.open(house.who, House::request()).id;
    const auto change = [&](const std::string& prefix, int count, bool remove = false) {
        WorkspacePatch patch;
        patch.labels.emplace();
        for (int i = 0; i < count; ++i) {
            (*patch.labels)[prefix + std::to_string(i)] =
                remove ? std::nullopt : std::optional<std::string>("v");
        }
        house.workspaces.patch(house.who, id, patch);
    };
    change("a", 60);
    const Error error = errorOf([&] { change("b", 5); });
    CHECK(error.code() == ErrorCode::InvalidArgument);
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields().front().pointer == "/labels");
    CHECK(house.workspaces.get(house.who, id).labels.size() == 60);  // a patch is all or nothing
    change("b", 4);
    change("a", 60);  // these labels exist already
    change("a", 60, true);
    CHECK(house.workspaces.get(house.who, id).labels.size() == 4);
    WorkspacePatch heavy;
    heavy.labels.emplace();
    (*heavy.labels)["a"] = std::string(58'000, 'v');
    CHECK(codeOf([&] { house.workspaces.patch(house.who, id, heavy); }) ==
          ErrorCode::InvalidArgument);
}

TEST_CASE("a claim cancelled at any moment leaves no sandbox taken", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    for (int round = 0; round < 20; ++round) {
        REQUIRE(house.filled("p", 1));
        std::stop_source stop;
        std::optional<WorkspaceView> view;
        std::jthread client([&] {
            Task<WorkspaceView> claim = house.workspaces.create(house.who, House::request());
            if (runToEnd(claim, house.clock, stop.get_token())) view = claim.result();
        });
        for (int i = 0; i < round * 100; ++i) std::this_thread::yield();
        stop.request_stop();
        client.join();
        const auto left = house.workspaces.list(house.who, {}).items;
        CHECK(left.size() == (view ? 1 : 0));
        for (const WorkspaceView& one : left) house.workspaces.close(house.who, one.id);
        // No sandbox stays claimed without a workspace, and the pool fills again.
        REQUIRE(house.settleUntil([&] { return house.warm.counts("p").claimed == 0; }));
    }
}

TEST_CASE("a claim that hangs up in line gives back its place and its part of the quota",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const std::string first = house.open(house.who, House::request()).id;
    house.quotas.load("default", {.workspaces = 2});
    {
        auto claim = house.claiming(house.who, House::request());
        REQUIRE_FALSE(claim.run());
        CHECK(house.line.waiting("p") == 1);
        CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::QuotaExceeded);
    }
    CHECK(house.line.waiting("p") == 0);
    CHECK(house.logged("claim.cancelled").size() == 1);
    CHECK(house.metrics.render().find("pool=\"p\",result=\"cancelled\"} 1") != std::string::npos);
    auto claim = house.claiming(house.who, House::request());
    CHECK_FALSE(claim.run());
}

TEST_CASE("a waiting claim counts once in its tenant's rate", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    house.open(house.who, House::request());
    house.quotas.load("default", {.claims_per_second = 1, .claim_burst = 1});
    auto claim = house.claiming(house.who, House::request());
    REQUIRE_FALSE(claim.run());
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::RateLimited);
    REQUIRE(house.settleUntil([&] { return claim.run(); }));
    CHECK(claim.result().phase == WorkspacePhase::Active);
}

TEST_CASE("a claim with a key that waits without a thread is answered when its turn has come",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView first = house.open(house.who, House::request());
    auto claim = house.claiming(house.who, House::request("k"));
    REQUIRE_FALSE(claim.run());
    CHECK(codeOf([&] { house.open(house.who, House::request("k")); }) ==
          ErrorCode::IdempotencyInFlight);
    REQUIRE(house.settleUntil([&] { return claim.run(); }));
    const WorkspaceView view = claim.result();
    CHECK(view.sandbox_id != first.sandbox_id);
    CHECK(house.open(house.who, House::request("k")).id == view.id);
}
