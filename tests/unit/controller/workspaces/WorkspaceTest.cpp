#include <atomic>
#include <barrier>
#include <csignal>
#include <functional>

#include "controller/executions/LiveExecution.h"
#include "controller/workspaces/Workspace.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

namespace {

const TimePoint kStart{1h};

std::shared_ptr<Workspace> workspace(std::chrono::milliseconds idle,
                                     std::chrono::milliseconds lifetime = 0ms,
                                     const std::function<void(WorkspaceFacts&)>& change = {}) {
    WorkspaceFacts facts;
    facts.id = "ws_1";
    facts.created_at = kStart;
    if (change) change(facts);
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
    REQUIRE(ws->workBegan(Activity::Execution, kStart));
    REQUIRE(ws->workBegan(Activity::Execution, kStart + 1s));
    CHECK_FALSE(ws->due(kStart + 1h));
    CHECK(ws->nextDue() == TimePoint::max());
    CHECK_FALSE(ws->view().idle_expires_at);
    ws->workEnded(Activity::Execution, kStart + 1h);
    CHECK_FALSE(ws->due(kStart + 2h));
    ws->workEnded(Activity::Execution, kStart + 2h);
    CHECK(ws->due(kStart + 2h + 10s) == EndReason::Idle);
}

TEST_CASE("without counted work an execution keeps a workspace only while a client attends to it",
          "[unit][controller]") {
    const auto ws =
        workspace(10s, 0ms, [](WorkspaceFacts& facts) { facts.count_running_work = false; });
    REQUIRE(ws->workBegan(Activity::Execution, kStart + 1s));
    CHECK(ws->nextDue() == kStart + 11s);  // its start was an activity
    ws->attended(kStart + 5s);
    CHECK(ws->nextDue() == TimePoint::max());
    ws->left(kStart + 30s);
    CHECK(ws->nextDue() == kStart + 40s);
    CHECK(ws->due(kStart + 40s) == EndReason::Idle);
    CHECK(ws->touch(kStart + 35s));  // the lease of work that goes on
    CHECK_FALSE(ws->due(kStart + 44s));
    REQUIRE(ws->workBegan(Activity::Transfer, kStart + 40s));
    CHECK_FALSE(ws->due(kStart + 1h));
    ws->workEnded(Activity::Transfer, kStart + 1h);
    CHECK(ws->due(kStart + 1h + 10s) == EndReason::Idle);
    ws->workEnded(Activity::Execution, kStart + 1h + 5s);
    CHECK(ws->nextDue() == kStart + 1h + 15s);
}

TEST_CASE("a workspace is warned of each end once, in time", "[unit][controller]") {
    const auto warned = [](WorkspaceFacts& facts) { facts.warn_before = 30s; };
    const auto ws = workspace(100s, 250s, warned);
    CHECK_FALSE(ws->warning(kStart + 69s));
    const std::optional<NearEnd> idle = ws->warning(kStart + 70s);
    REQUIRE(idle);
    CHECK(idle->reason == EndReason::Idle);
    CHECK(idle->at == kStart + 100s);
    CHECK_FALSE(ws->warning(kStart + 71s));
    CHECK(ws->touch(kStart + 80s));
    CHECK_FALSE(ws->warning(kStart + 149s));
    CHECK(ws->warning(kStart + 150s)->at == kStart + 180s);
    CHECK(ws->touch(kStart + 160s));  // idle at 260 s, after the lifetime
    const std::optional<NearEnd> last = ws->warning(kStart + 220s);
    REQUIRE(last);
    CHECK(last->reason == EndReason::Lifetime);
    CHECK(last->at == kStart + 250s);
    ws->deadlines(kStart + 400s, 100s);
    CHECK(ws->warning(kStart + 240s)->reason == EndReason::Idle);

    // With a short timeout, the warning comes at half of it, not at once.
    CHECK_FALSE(workspace(10s, 0ms, warned)->warning(kStart + 4s));
    CHECK(workspace(10s, 0ms, warned)->warning(kStart + 5s));
    CHECK_FALSE(workspace(10s)->warning(kStart + 9s));
    CHECK_FALSE(workspace(10s, 0ms, [](WorkspaceFacts& facts) {
                    facts.warn_before = 30s;
                    facts.one_shot = true;
                })->warning(kStart + 9s));
    const auto busy = workspace(100s, 0ms, warned);
    REQUIRE(busy->workBegan(Activity::Execution, kStart));
    CHECK_FALSE(busy->warning(kStart + 99s));
}

TEST_CASE("the end for idleness is never shown after the latest end", "[unit][controller]") {
    const auto ws = workspace(3h, 60s);
    CHECK(ws->view().idle_expires_at == ws->view().expires_at);
    const auto shorter = workspace(10s, 60s);
    CHECK(*shorter->view().idle_expires_at < *shorter->view().expires_at);
}

TEST_CASE("a lifetime ends a workspace whatever runs in it", "[unit][controller]") {
    const auto ws = workspace(0ms, 60s);
    CHECK(ws->nextDue() == kStart + 60s);
    ws->workBegan(Activity::Execution, kStart);
    CHECK_FALSE(ws->due(kStart + 59s));
    CHECK(ws->due(kStart + 60s) == EndReason::Lifetime);
    ws->deadlines(kStart + 90s, 5s);
    CHECK_FALSE(ws->due(kStart + 60s));
    CHECK(ws->beginEnd(EndReason::Lifetime, kStart + 89s) == false);
    CHECK(ws->beginEnd(EndReason::Lifetime, kStart + 90s));
}

TEST_CASE("an agent cannot report a later end than the pool allows", "[unit][controller]") {
    const auto most = [](WorkspaceFacts& facts) { facts.max_lifetime = 60s; };
    const auto ws = workspace(0ms, 0ms, most);  // it reports none
    CHECK(ws->nextDue() == kStart + 60s);
    ws->deadlines(kStart + 1h, 0ms);
    CHECK(ws->nextDue() == kStart + 60s);
    ws->deadlines(TimePoint{}, 0ms);
    CHECK(ws->due(kStart + 60s) == EndReason::Lifetime);
    ws->deadlines(kStart + 30s, 0ms);
    CHECK(ws->nextDue() == kStart + 30s);
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
    CHECK_FALSE(ws->workBegan(Activity::Execution, kStart + 1s));
    CHECK_FALSE(ws->due(kStart + 1h));
    CHECK(ws->nextDue() == TimePoint::max());
    CHECK(ws->view().phase == WorkspacePhase::Reclaiming);
}

TEST_CASE("an activity and a reclaim never both win", "[unit][controller]") {
    constexpr int kRounds = 10'000;
    const TimePoint late = kStart + 11s;
    // Each returns whether the workspace accepted it. attended() is not refused, but sees the end.
    const std::vector<std::pair<std::string, std::function<bool(Workspace&)>>> activities = {
        {"touch", [&](Workspace& ws) { return ws.touch(late); }},
        {"execution", [&](Workspace& ws) { return ws.workBegan(Activity::Execution, late); }},
        {"transfer", [&](Workspace& ws) { return ws.workBegan(Activity::Transfer, late); }},
        {"attended",
         [&](Workspace& ws) {
             ws.attended(late);
             return ws.active();
         }},
    };
    for (const auto& [name, activity] : activities) {
        INFO(name);
        std::vector<std::shared_ptr<Workspace>> all;
        all.reserve(kRounds);
        for (int i = 0; i < kRounds; ++i) {
            all.push_back(workspace(
                10s, 0ms, [](WorkspaceFacts& facts) { facts.count_running_work = false; }));
            // An execution that nobody follows does not keep the workspace.
            all.back()->workBegan(Activity::Execution, kStart);
        }
        std::vector<char> taken(kRounds);
        std::vector<char> ended(kRounds);
        std::barrier<> start(2);
        {
            const std::jthread client([&, &act = activity] {
                for (std::size_t i = 0; i < kRounds; ++i) {
                    start.arrive_and_wait();
                    taken[i] = act(*all[i]);
                }
            });
            const std::jthread reclaimer([&] {
                for (std::size_t i = 0; i < kRounds; ++i) {
                    start.arrive_and_wait();
                    ended[i] = all[i]->beginEnd(EndReason::Idle, late);
                }
            });
        }
        int both = 0;
        int neither = 0;
        for (std::size_t i = 0; i < kRounds; ++i) {
            both += (taken[i] != 0 && ended[i] != 0) ? 1 : 0;
            neither += (taken[i] == 0 && ended[i] == 0) ? 1 : 0;
        }
        CHECK(both == 0);
        CHECK(neither == 0);
    }
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

TEST_CASE("an execution killed for memory has status oom, one whose child was killed has not",
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
        bool looked = false;
        LiveExecution::Reports reports;
        reports.ended = [&](const std::shared_ptr<LiveExecution>& ended) {
            looked = ended->mayHaveMetOom(kLimit);
            ended->oomSeen();
            return false;
        };
        const auto execution =
            std::make_shared<LiveExecution>(LiveExecution::Facts{}, workspace(0ms), clock, reports);
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

TEST_CASE("a paced execution waits only for readers that read on", "[unit][controller]") {
    const ManualClock clock;
    LiveExecution::Facts facts;
    const bool restarted = GENERATE(false, true);
    facts.paced = !restarted;
    const auto execution = std::make_shared<LiveExecution>(facts, workspace(0ms), clock);
    std::shared_ptr<void> reader = execution->reading();  // possibly before the agent reports
    agent::ExecStart start;
    if (restarted) start.note = Json{{"paced", true}};
    execution->started(start);
    execution->output(1, 0, std::string(1000, 'x'));
    CHECK(execution->unread() == 1000);
    REQUIRE(execution->read(400, 100));
    CHECK(execution->unread() == 600);
    CHECK_FALSE(execution->read(1'000'000, 100));  // beyond the output so far
    execution->output(1, 1000, "more");
    CHECK(execution->unread() == 4);
    const std::shared_ptr<void> waiter = execution->subscribe([] {});
    reader.reset();
    CHECK_FALSE(execution->unread());
    CHECK(execution->note()["paced"] == (restarted ? Json() : Json(true)));
}

TEST_CASE("an execution lost with its agent after a memory kill has status oom",
          "[unit][controller]") {
    const ManualClock clock;
    for (const bool met : {true, false}) {
        bool looked = false;
        LiveExecution::Reports reports;
        reports.ended = [&](const std::shared_ptr<LiveExecution>& ended) {
            looked = ended->mayHaveMetOom(512) && ended->agentLost();
            if (met) ended->oomSeen();
            return false;
        };
        const auto execution =
            std::make_shared<LiveExecution>(LiveExecution::Facts{}, workspace(0ms), clock, reports);
        execution->giveUp(true);  // its workspace has ended as lost
        CHECK(looked);
        CHECK(execution->view().status == (met ? ExecutionStatus::Oom : ExecutionStatus::Lost));
    }
}
