#include <atomic>
#include <barrier>
#include <csignal>

#include "controller/executions/LiveExecution.h"
#include "controller/workspaces/Workspace.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart{1h};

std::shared_ptr<Workspace> workspace(std::chrono::milliseconds idle,
                                     std::chrono::milliseconds lifetime = 0ms) {
    WorkspaceFacts facts;
    facts.id = "ws_1";
    facts.created_at = kStart;
    agent::Deadlines deadlines;
    deadlines.idle_timeout = idle;
    if (lifetime.count() > 0) deadlines.expires_at = kStart + lifetime;
    return std::make_shared<Workspace>(facts, nullptr, std::map<std::string, std::string>{},
                                       deadlines, kStart);
}

}  // namespace

TEST_CASE("a workspace is due when it has been idle for its timeout", "[unit][controller]") {
    const auto ws = workspace(10s);
    CHECK_FALSE(ws->due(kStart + 9s));
    CHECK(ws->due(kStart + 10s) == EndReason::Idle);
    CHECK(ws->nextDue() == kStart + 10s);
    CHECK(ws->touch(kStart + 5s));
    CHECK_FALSE(ws->due(kStart + 14s));
    CHECK(ws->touch(kStart + 1s));  // an older touch that arrives late takes nothing back
    CHECK(ws->nextDue() == kStart + 15s);
}

TEST_CASE("running work keeps a workspace from being idle", "[unit][controller]") {
    const auto ws = workspace(10s);
    REQUIRE(ws->workBegan(kStart));
    REQUIRE(ws->workBegan(kStart + 1s));
    CHECK_FALSE(ws->due(kStart + 1h));
    CHECK(ws->nextDue() == TimePoint::max());
    CHECK_FALSE(ws->view().idle_expires_at);
    ws->workEnded(kStart + 1h);
    CHECK_FALSE(ws->due(kStart + 2h));
    ws->workEnded(kStart + 2h);
    CHECK(ws->due(kStart + 2h + 10s) == EndReason::Idle);
}

TEST_CASE("the end for idleness is never shown behind the latest end", "[unit][controller]") {
    const auto ws = workspace(3h, 60s);
    CHECK(ws->view().idle_expires_at == ws->view().expires_at);
    const auto shorter = workspace(10s, 60s);
    CHECK(*shorter->view().idle_expires_at < *shorter->view().expires_at);
}

TEST_CASE("a lifetime ends a workspace whatever runs in it", "[unit][controller]") {
    const auto ws = workspace(0ms, 60s);
    CHECK(ws->nextDue() == kStart + 60s);
    ws->workBegan(kStart);
    CHECK_FALSE(ws->due(kStart + 59s));
    CHECK(ws->due(kStart + 60s) == EndReason::Lifetime);
    ws->deadlines(kStart + 90s, 5s);
    CHECK_FALSE(ws->due(kStart + 60s));
    CHECK(ws->beginEnd(EndReason::Lifetime, kStart + 89s) == false);
    CHECK(ws->beginEnd(EndReason::Lifetime, kStart + 90s));
}

TEST_CASE("without deadlines a workspace is never due", "[unit][controller]") {
    const auto ws = workspace(0ms);
    CHECK_FALSE(ws->due(kStart + 1000h));
    CHECK(ws->nextDue() == TimePoint::max());
}

TEST_CASE("only the first end begins, and nothing is accepted after it", "[unit][controller]") {
    const auto ws = workspace(10s);
    CHECK(ws->beginEnd(EndReason::Deleted));
    CHECK_FALSE(ws->beginEnd(EndReason::Idle, kStart + 1h));
    CHECK_FALSE(ws->beginEnd(EndReason::Deleted));
    CHECK_FALSE(ws->active());
    CHECK_FALSE(ws->touch(kStart + 1s));
    CHECK_FALSE(ws->workBegan(kStart + 1s));
    CHECK_FALSE(ws->due(kStart + 1h));
    CHECK(ws->nextDue() == TimePoint::max());
    CHECK(ws->view().phase == WorkspacePhase::Reclaiming);
}

TEST_CASE("a touch and a reclaim never both win", "[unit][controller]") {
    constexpr int kRounds = 10'000;
    std::vector<std::shared_ptr<Workspace>> all;
    for (int i = 0; i < kRounds; ++i) all.push_back(workspace(10s));
    std::vector<char> touched(kRounds);
    std::vector<char> ended(kRounds);
    std::barrier<> start(2);
    const TimePoint late = kStart + 11s;
    {
        const std::jthread toucher([&] {
            for (int i = 0; i < kRounds; ++i) {
                start.arrive_and_wait();
                touched[static_cast<std::size_t>(i)] =
                    all[static_cast<std::size_t>(i)]->touch(late);
            }
        });
        const std::jthread reclaimer([&] {
            for (int i = 0; i < kRounds; ++i) {
                start.arrive_and_wait();
                ended[static_cast<std::size_t>(i)] =
                    all[static_cast<std::size_t>(i)]->beginEnd(EndReason::Idle, late);
            }
        });
    }
    int both = 0;
    int neither = 0;
    for (std::size_t i = 0; i < kRounds; ++i) {
        both += (touched[i] != 0 && ended[i] != 0) ? 1 : 0;
        neither += (touched[i] == 0 && ended[i] == 0) ? 1 : 0;
    }
    CHECK(both == 0);
    CHECK(neither == 0);
}

TEST_CASE("labels are changed and removed one by one", "[unit][controller]") {
    const auto ws = workspace(0ms);
    ws->relabel({{"a", "1"}, {"b", "2"}});
    ws->relabel({{"a", std::nullopt}, {"c", "3"}, {"never", std::nullopt}});
    CHECK(ws->view().labels == std::map<std::string, std::string>{{"b", "2"}, {"c", "3"}});
}

TEST_CASE("each kernel kill for memory is seen once", "[unit][controller]") {
    const auto ws = workspace(0ms);
    CHECK_FALSE(ws->sawOom(0));
    CHECK(ws->sawOom(1));
    CHECK_FALSE(ws->sawOom(1));
    CHECK(ws->sawOom(3));
    ws->lostWith(3);
    CHECK_FALSE(ws->lostToMemory());
    ws->lostWith(4);
    CHECK(ws->lostToMemory());
}

TEST_CASE("who was killed is told as out of memory, whose child was killed is not",
          "[unit][controller]") {
    using Status = ExecutionStatus;
    struct Case {
        Status status;
        int exit_code, signal;
        std::uint64_t peak;
        bool looks;
        Status told;
    };
    constexpr std::uint64_t kLimit = 512;
    const ManualClock clock;
    for (const Case& c : {Case{Status::Killed, 137, SIGKILL, 1, true, Status::Oom},
                          Case{Status::Killed, 143, SIGTERM, 1, false, Status::Killed},
                          Case{Status::Timeout, 137, SIGKILL, 1, true, Status::Timeout},
                          Case{Status::Failed, 137, 0, 1, true, Status::Failed},
                          Case{Status::Failed, 1, 0, 1, false, Status::Failed},
                          Case{Status::Ok, 0, 0, kLimit, true, Status::Ok},
                          Case{Status::Ok, 0, 0, 1, false, Status::Ok}}) {
        const auto execution =
            std::make_shared<LiveExecution>(LiveExecution::Facts{}, workspace(0ms), clock);
        execution->self(execution);
        bool looked = false;
        execution->onEnded([&](const std::shared_ptr<LiveExecution>& ended) {
            looked = ended->mayHaveMetOom(kLimit);
            ended->oomSeen();
        });
        agent::ExecResult result;
        result.status = c.status;
        result.exit_code = c.exit_code;
        result.signal = c.signal;
        result.max_rss_bytes = c.peak;
        execution->exited(result);
        CHECK(looked == c.looks);
        CHECK(execution->view().status == c.told);
    }
}

TEST_CASE("a paced execution waits for who reads on, and for nobody else", "[unit][controller]") {
    const ManualClock clock;
    LiveExecution::Facts facts;
    const bool restarted = GENERATE(false, true);
    facts.paced = !restarted;
    const auto execution = std::make_shared<LiveExecution>(facts, workspace(0ms), clock);
    execution->self(execution);
    std::shared_ptr<void> reader = execution->reading();  // perhaps before the agent tells
    agent::ExecStart start;
    if (restarted) start.note = Json{{"paced", true}};
    execution->started(start);
    execution->output(1, 0, std::string(1000, 'x'));
    CHECK(execution->unread() == 1000);
    REQUIRE(execution->read(400, 100));
    CHECK(execution->unread() == 600);
    CHECK_FALSE(execution->read(1'000'000, 100));  // a place that there is not yet
    execution->output(1, 1000, "more");
    CHECK(execution->unread() == 4);
    const std::shared_ptr<void> waiter = execution->subscribe([] {});
    reader.reset();
    CHECK_FALSE(execution->unread());
    CHECK(execution->note()["paced"] == (restarted ? Json() : Json(true)));
}

TEST_CASE("what was lost with an agent that was killed for memory is told as out of memory",
          "[unit][controller]") {
    const ManualClock clock;
    for (const bool met : {true, false}) {
        const auto execution =
            std::make_shared<LiveExecution>(LiveExecution::Facts{}, workspace(0ms), clock);
        execution->self(execution);
        bool looked = false;
        execution->onEnded([&](const std::shared_ptr<LiveExecution>& ended) {
            looked = ended->mayHaveMetOom(512) && ended->agentLost();
            if (met) ended->oomSeen();
        });
        execution->giveUp(true);  // its workspace has ended as lost
        CHECK(looked);
        CHECK(execution->view().status == (met ? ExecutionStatus::Oom : ExecutionStatus::Lost));
    }
}
