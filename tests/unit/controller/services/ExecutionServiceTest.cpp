#include "controller/services/ExecutionService.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A house with an open workspace and one more sandbox.
struct Workbench : Filled {
    Workbench() : Filled(2) { workspace = house.open(house.who, House::request()).id; }
    std::string workspace;
};

}  // namespace

TEST_CASE("an execution ends with its output and is found again from disk", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto execution = house.executions.start(house.who, open.workspace, command("echo a b"));
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().stdout_bytes == "a b\n");
    CHECK(execution->view().status == ExecutionStatus::Ok);
    CHECK(execution->view().exit_code == 0);
    REQUIRE(
        house.settleUntil([&] { return house.journal.execution(execution->id()).has_value(); }));
    house.loop.settle();
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes == "a b\n");
    CHECK(house.executions.list(house.who, open.workspace).size() == 1);
    const Principal other{"other", Role::Operator, ""};
    CHECK(codeOf([&] { house.executions.find(other, execution->id()); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { house.executions.signal(house.who, execution->id(), "TERM"); }) ==
          ErrorCode::Conflict);
}

TEST_CASE("a list reads none of its executions, and one that cannot be read hides no other",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto first = house.executions.start(house.who, open.workspace, command("echo first"));
    REQUIRE(house.settleUntil([&] { return house.journal.execution(first->id()).has_value(); }));
    house.loop.settle();
    house.journal.record(ExecutionRecord{"ex_bad", open.workspace, house.who.tenant, "f", "no JSON",
                                         "", 1, "1970-01-01T00:00:00Z"},
                         {});
    const auto list = house.executions.list(house.who, open.workspace);
    REQUIRE(list.size() == 2);
    CHECK(list[0].id == first->id());
    CHECK(list[0].started_at == first->viewUpTo(0).started_at);
    CHECK(house.executions.listed(house.who, list[0].id)->view().stdout_bytes == "first\n");
    CHECK(list[1].id == "ex_bad");
    CHECK_FALSE(house.executions.listed(house.who, "ex_bad"));
    CHECK_FALSE(house.executions.listed(house.who, "ex_none"));
    const Principal other{"other", Role::Operator, ""};
    CHECK_FALSE(house.executions.listed(other, list[0].id));
    CHECK(codeOf([&] { house.executions.list(other, open.workspace); }) == ErrorCode::NotFound);
}

TEST_CASE("executions with the same key run once", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("exit 3");
    request.idempotency_key = "k";
    request.fingerprint = "f";
    const auto first = house.executions.start(house.who, open.workspace, request);
    REQUIRE(house.settleUntil([&] { return first->finished(); }));
    const auto again = house.executions.start(house.who, open.workspace, request);
    CHECK(again->id() == first->id());
    CHECK(again->view().replayed);
    CHECK_FALSE(first->view().replayed);  // the first answer is not a replay
    REQUIRE(house.settleUntil([&] { return house.journal.execution(first->id()).has_value(); }));
    house.loop.settle();
    const auto stored = house.executions.start(house.who, open.workspace, request);
    CHECK(stored->view().exit_code == 3);
    CHECK(stored->view().replayed);
    CHECK_FALSE(house.executions.find(house.who, first->id())->view().replayed);
    request.fingerprint = "g";
    CHECK(codeOf([&] { house.executions.start(house.who, open.workspace, request); }) ==
          ErrorCode::IdempotencyMismatch);
}

TEST_CASE("a running execution keeps its workspace and takes input", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("cat");
    request.stdin_open = true;
    const auto execution = house.executions.start(house.who, open.workspace, request);
    CHECK_FALSE(house.workspaces.get(house.who, open.workspace).idle_expires_at);
    house.executions.writeStdin(house.who, execution->id(), "input", false);
    house.executions.writeStdin(house.who, execution->id(), "", true);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().stdout_bytes == "input");
    // A client's close may come after the end that its bytes have brought about.
    CHECK_NOTHROW(house.executions.writeStdin(house.who, execution->id(), "", true));
    CHECK(codeOf([&] { house.executions.writeStdin(house.who, execution->id(), "more", true); }) ==
          ErrorCode::Conflict);
    CHECK(house.settleUntil([&] {
        return house.workspaces.get(house.who, open.workspace).idle_expires_at.has_value();
    }));
}

TEST_CASE("an execution reads its input when it likes, and its start does not wait for that",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("sleep 100");
    request.stdin_bytes = std::string(1U << 20U, 'x');
    const auto deaf = house.executions.start(house.who, open.workspace, request);
    CHECK_FALSE(deaf->finished());
    request.command = "cat";
    const auto reader = house.executions.start(house.who, open.workspace, request);
    REQUIRE(house.settleUntil([&] { return reader->finished(); }));
    CHECK(reader->viewUpTo(0).output_end == 1U << 20U);
    CHECK_FALSE(deaf->finished());
    house.executions.kill(house.who, deaf->id());
    CHECK(house.settleUntil([&] { return deaf->finished(); }));
}

TEST_CASE("an execution too large for the agent leaves nothing", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("true");
    for (int i = 0; i < 3; ++i) request.env["V" + std::to_string(i)] = std::string(100'000, 'x');
    CHECK(codeOf([&] { house.executions.start(house.who, open.workspace, request); }) ==
          ErrorCode::PayloadTooLarge);
    house.loop.settle();
    CHECK(house.executions.list(house.who, open.workspace).empty());
    CHECK(house.workspaces.get(house.who, open.workspace).idle_expires_at);
}

TEST_CASE("a one shot's sandbox goes with its execution", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto execution = house.runOnce(house.who, House::request(), command("echo once"));
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    const std::string workspace = execution->view().workspace_id;
    REQUIRE(house.settleUntil([&] { return !house.table.find(workspace); }));
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes == "once\n");
    CHECK(house.table.all().size() == 1);
}

TEST_CASE("a second execution's end does not take a one shot's workspace", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto first = house.runOnce(house.who, House::request(), command("sleep 9"));
    const std::string workspace = first->view().workspace_id;
    const auto second = house.executions.start(house.who, workspace, command("echo beside"));
    REQUIRE(house.settleUntil([&] { return house.journal.execution(second->id()).has_value(); }));
    house.loop.settle();
    CHECK(house.table.find(workspace));
    CHECK(first->view().status == ExecutionStatus::Running);
    house.executions.kill(house.who, first->id());
    CHECK(house.settleUntil([&] { return !house.table.find(workspace); }));
}

TEST_CASE("an execution in a sandbox that dies is lost", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    open.runtime.kill(house.workspaces.get(house.who, open.workspace).sandbox_id);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status != ExecutionStatus::Ok);
    // The start is refused, or it is lost like the first if the loss is just being noticed.
    std::shared_ptr<Execution> late;
    const auto refused =
        codeOf([&] { late = house.executions.start(house.who, open.workspace, command("echo")); });
    if (refused) return;
    REQUIRE(house.settleUntil([&] { return late->finished(); }));
    CHECK(late->view().status != ExecutionStatus::Ok);
}

TEST_CASE("an execution lost to a memory kill is oom, even if its sandbox is destroyed first",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto start = [&] {
        return house.executions.start(house.who, open.workspace, command("sleep 1000"));
    };
    const auto first = start();
    const auto second = start();
    const std::string sandbox = house.workspaces.get(house.who, open.workspace).sandbox_id;
    open.runtime.oomKills(1);
    open.runtime.kill(sandbox);
    house.terminator.lost(sandbox, "gone");
    house.sandboxes.reconcile(sandbox);
    REQUIRE_FALSE(open.runtime.find(sandbox));
    REQUIRE(house.settleUntil([&] { return first->finished() && second->finished(); }));
    CHECK(first->view().status == ExecutionStatus::Oom);
    CHECK(second->view().status == ExecutionStatus::Oom);
}

TEST_CASE("in a cluster the agent reports memory kills of the kernel", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    open.runtime.beCluster();
    const auto killed = [&] {
        const auto execution =
            house.executions.start(house.who, open.workspace, command("sleep 1000"));
        house.executions.kill(house.who, execution->id());
        REQUIRE(house.settleUntil([&] { return execution->finished(); }));
        return execution->view().status;
    };
    CHECK(killed() == ExecutionStatus::Killed);
    open.runtime.oomKills(1);
    CHECK(killed() == ExecutionStatus::Oom);
    CHECK(killed() == ExecutionStatus::Killed);  // the kernel's kill was the previous one
    open.runtime.letAgentsTellNothing();
    open.runtime.oomKills(2);
    CHECK(killed() == ExecutionStatus::Killed);
    CHECK(house.workspaces.get(house.who, open.workspace).phase == WorkspacePhase::Active);
}

TEST_CASE("a memory kill of a whole container is the end reason of its workspace and executions",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    open.runtime.beCluster();
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    const std::string sandbox = house.workspaces.get(house.who, open.workspace).sandbox_id;
    const bool of_memory = GENERATE(true, false);
    if (of_memory) {
        open.runtime.killForMemory(sandbox);
    } else {
        open.runtime.kill(sandbox);
    }
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == (of_memory ? ExecutionStatus::Oom : ExecutionStatus::Lost));
    const Error gone = errorOf([&] { house.workspaces.get(house.who, open.workspace); });
    CHECK(gone.code() == ErrorCode::Gone);
    CHECK(gone.endedReason() == (of_memory ? "oom" : "lost"));
    CHECK_THAT(gone.what(), Catch::Contains(of_memory ? "its sandbox ran out of memory"
                                                      : "its sandbox was lost"));
    const auto lost = house.logged("sandbox.lost");
    REQUIRE(lost.size() == 1);
    CHECK_THAT(lost[0], Catch::Contains(of_memory ? "its container ran out of memory"
                                                  : "its container has ended"));
}

TEST_CASE("a killed execution ends even if its runtime cannot tell why", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    open.runtime.failUsage();
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    house.executions.kill(house.who, execution->id());
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == ExecutionStatus::Killed);
    CHECK(house.workspaces.get(house.who, open.workspace).phase == WorkspacePhase::Active);
}

TEST_CASE("an ended execution is not overdue while its end is examined", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("sleep 100");
    request.timeout = 1s;
    open.runtime.holdUsage();
    const auto execution = house.executions.start(house.who, open.workspace, request);
    house.executions.kill(house.who, execution->id());
    const auto live = house.live.find(execution->id());
    REQUIRE(eventually([&] { return live->hasEnded(); }));
    CHECK_FALSE(execution->finished());  // the runtime must still be asked for the reason
    for (int i = 0; i < 4; ++i) {
        open.manual.advance(30s);
        house.settler.endOverdue();
    }
    CHECK(house.table.find(open.workspace));
    open.runtime.letUse();
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == ExecutionStatus::Killed);
}

TEST_CASE("a wait for an execution ends at its time limit if the sandbox does not answer",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest request = command("sleep 1000");
    request.timeout = 5s;
    const auto execution = house.executions.start(house.who, open.workspace, request);
    const std::string sandbox = house.table.find(open.workspace)->facts().sandbox;
    std::atomic<int> told = 0;
    const auto subscription = execution->subscribe([&] { ++told; });
    open.runtime.hang(sandbox);
    open.manual.advance(5s);
    house.settler.endOverdue();
    CHECK_FALSE(execution->unanswered());  // an agent that answers may still end it
    const int before = told;
    // A report that was under way as it stopped makes the first look's call only late.
    for (int look = 0; look < 3 && !execution->unanswered(); ++look) {
        open.manual.advance(1s);
        house.settler.endOverdue();
    }
    CHECK(told > before);
    CHECK(execution->unanswered());
    CHECK(codeOf([&] { execution->requireAnswer(); }) == ErrorCode::Deadline);
    CHECK(execution->view().status == ExecutionStatus::Running);
    CHECK(house.table.find(open.workspace));

    open.runtime.resume(sandbox);
    REQUIRE(laterOn(house, [&] { return !execution->unanswered(); }));
    execution->requireAnswer();
    // On a busy machine the agent is slow: seconds of this clock would run on to the command's own
    // end.
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == ExecutionStatus::Timeout);
    CHECK(house.table.find(open.workspace));
}

TEST_CASE("work cut off by a workspace's end is on disk before its sandbox is destroyed",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    const std::string sandbox = house.table.find(open.workspace)->facts().sandbox;
    house.workspaces.close(house.who, open.workspace);
    REQUIRE(house.settleUntil([&] { return !exists(open, sandbox); }));
    CHECK(house.journal.hasExecution(execution->id()));
    bool ended = false;
    house.journal.read([&](Database& database) {
        Statement row(database, "SELECT reason FROM workspaces WHERE id = ?");
        row.bind(open.workspace);
        ended = row.step() && row.text(0) == "deleted";
    });
    CHECK(ended);
    CHECK(execution->view().status == ExecutionStatus::Killed);
}

TEST_CASE("a full disk does not keep the sandbox of an ended workspace", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    house.loop.settle();
    house.journal.flush(5s);
    house.journal.writeNow(
        [](Database& database) { database.execute("PRAGMA max_page_count = 1"); });
    house.executions.start(house.who, open.workspace, command("sleep 1000"));
    const std::string sandbox = house.table.find(open.workspace)->facts().sandbox;
    house.workspaces.close(house.who, open.workspace);
    for (int look = 0; look < 20; ++look) {
        house.loop.settle();
        open.manual.advance(100ms);
    }
    CHECK(exists(open, sandbox));
    CHECK(laterOn(house, [&] { return !exists(open, sandbox); }));
}

TEST_CASE("a one shot whose result a full disk refuses stays until it is durable",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    house.loop.settle();
    house.journal.flush(5s);
    house.journal.writeNow(
        [](Database& database) { database.execute("PRAGMA max_page_count = 1"); });
    const std::string long_text(200'000, 'x');
    const auto execution = house.runOnce(house.who, House::request(), command("echo " + long_text));
    const std::string workspace = execution->view().workspace_id;
    const auto failures = [&] {
        const std::string text = house.metrics.render();
        const std::string name = "\nhearth_journal_write_failures_total ";
        return std::stoi(text.substr(text.find(name) + name.size()));
    };
    REQUIRE(house.settleUntil([&] { return execution->finished() && failures() > 3; }));
    house.loop.settle();
    for (int i = 0; i < 8; ++i) {
        open.manual.advance(2min);
        house.settler.endOverdue();
        house.reclaimer.sweep();
    }
    CHECK(house.table.find(workspace));  // its sandbox keeps the result, however long it idles
    CHECK_FALSE(house.table.find(open.workspace));
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes ==
          long_text + "\n");
    house.journal.writeNow(
        [](Database& database) { database.execute("PRAGMA max_page_count = 1000000"); });
    REQUIRE(house.settleUntil([&] { return !house.table.find(workspace); }));
    REQUIRE(house.journal.execution(execution->id()));
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes ==
          long_text + "\n");
}

TEST_CASE("a result that was answered is on disk when its workspace has been closed",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    house.loop.start();
    std::jthread time([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) open.manual.advance(100us), std::this_thread::yield();
    });
    for (int i = 0; i < 10; ++i) {
        const std::string id = house.open(house.who, House::request()).id;
        const auto execution = house.executions.start(house.who, id, command("echo kept"));
        REQUIRE(execution->wait(5s));
        house.workspaces.close(house.who, id);
        CHECK(house.journal.hasExecution(execution->id()));
    }
    house.loop.stop();
}

TEST_CASE("new executions are refused while too much waits for the disk", "[unit][controller]") {
    Ground ground;
    House house(ground, {}, {.pending = 0});  // any amount is too much
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const auto refused = [&](const std::function<void()>& call) {
        try {
            call();
        } catch (const Error& e) {
            CHECK(e.retryAfter());
            CHECK_FALSE(e.hint().empty());
            return e.code() == ErrorCode::Unavailable;
        }
        return false;
    };
    CHECK(refused([&] { house.open(house.who, House::request()); }));
    CHECK(refused([&] { house.runOnce(house.who, House::request(), command("echo")); }));
    CHECK(refused([&] { house.executions.start(house.who, "ws_1", command("echo")); }));
    CHECK(house.warm.counts("p").ready == 2);  // the refusals cost no sandbox
}

TEST_CASE("the output kept for a tenant's running executions is bounded", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    ExecutionRequest large = command("sleep 99");
    large.output_limit = 16U << 20U;
    std::vector<std::string> ids;
    for (int i = 0; i < 32; ++i)
        ids.push_back(house.executions.start(house.who, open.workspace, large)->id());
    const auto begin = [&] { house.executions.start(house.who, open.workspace, large); };
    const Error refused = errorOf(begin);
    CHECK(refused.code() == ErrorCode::RateLimited);
    CHECK(refused.hint().starts_with("ask for less with outputLimitBytes"));
    CHECK(codeOf([&] { house.runOnce(house.who, House::request(), large); }) ==
          ErrorCode::RateLimited);
    CHECK(house.table.all().size() == 1);  // the refusals cost no sandbox

    const Principal other{"other", Role::User, ""};
    const std::string theirs = house.open(other, House::request()).id;
    CHECK_NOTHROW(house.executions.start(other, theirs, large));

    house.executions.signal(house.who, ids.front(), "KILL");
    REQUIRE(house.settleUntil([&] { return !house.live.find(ids.front()); }));
    CHECK_NOTHROW(begin());
    CHECK(codeOf(begin) == ErrorCode::RateLimited);
    for (const std::string& id : ids) {
        if (id != ids.front()) house.executions.signal(house.who, id, "KILL");
    }
    REQUIRE(house.settleUntil([&] { return house.live.all().size() == 2; }));
    house.workspaces.close(house.who, open.workspace);
    REQUIRE(house.settleUntil([&] { return house.live.all().size() == 1; }));
}

TEST_CASE("the input and the results of an execution count for its tenant", "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    std::shared_ptr<void> most =
        house.live.kept().take(house.who.tenant, LiveExecutions::kMostOfTenant - (4U << 20U));
    ExecutionRequest request = command("sleep 99");
    request.output_limit = 1U << 10U;
    request.stdin_bytes = std::string(4U << 20U, 'x');
    const auto begin = [&] { return house.executions.start(house.who, open.workspace, request); };
    CHECK(codeOf(begin) == ErrorCode::RateLimited);
    CHECK(codeOf([&] { house.runOnce(house.who, House::request(), request); }) ==
          ErrorCode::RateLimited);
    CHECK(house.table.all().size() == 1);
    request.stdin_bytes->resize(3U << 20U);
    const auto running = std::dynamic_pointer_cast<LiveExecution>(begin());
    REQUIRE(running);
    const std::string large =
        R"({"main":false,"mime":{"text/plain":")" + std::string(1U << 20U, 'y') + R"("}})";
    running->result(large);
    CHECK(running->view().result_count == 0);
    CHECK(running->view().dropped_results == 1);
    most.reset();
    running->result(large);
    REQUIRE(house.settleUntil([&] { return running->view().result_count == 1; }));
    most = house.live.kept().takeAnyway(house.who.tenant, LiveExecutions::kMostOfTenant);
    house.executions.signal(house.who, running->id(), "KILL");
    REQUIRE(house.settleUntil([&] { return house.live.all().empty(); }));
    most.reset();
    most = house.live.kept().take(house.who.tenant, LiveExecutions::kMostOfTenant);
    CHECK(most);  // all of it was given back
}

TEST_CASE("a long result is not parsed by the thread that brings it, and keeps its place",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    const auto running = std::dynamic_pointer_cast<LiveExecution>(
        house.executions.start(house.who, open.workspace, command("sleep 99")));
    REQUIRE(running);
    // Other ends have all the threads that a tenant may have.
    open.runtime.holdUsage();
    for (int i = 0; i < 4; ++i) {
        const auto killed = std::dynamic_pointer_cast<LiveExecution>(
            house.executions.start(house.who, open.workspace, command("sleep 98")));
        house.executions.kill(house.who, killed->id());
        REQUIRE(eventually([&] { return killed->hasEnded(); }));
    }
    const std::string small = R"({"main":false,"mime":{"text/plain":"small"}})";
    const std::string large =
        R"({"main":false,"mime":{"text/plain":")" + std::string(1U << 20U, 'y') + R"("}})";
    running->output(1, 0, "one");
    running->result(small);
    CHECK(running->view().result_count == 1);  // at once
    running->result(large);
    running->output(1, 3, "two");
    running->result(small);
    agent::ExecResult result;
    result.status = ExecutionStatus::Ok;
    running->exited(result);
    const ExecutionView early = running->view();
    CHECK(early.result_count == 1);
    CHECK(early.stdout_bytes == "one");  // output after the result waits for it
    CHECK(early.output_end == 3);
    CHECK_FALSE(running->read(3, 100));
    CHECK(running->read(0, 100)->bytes == "one");
    CHECK_FALSE(running->finished());
    open.runtime.letUse();
    REQUIRE(house.settleUntil([&] { return running->finished(); }));
    const ExecutionView view = running->view();
    CHECK(view.stdout_bytes == "onetwo");
    REQUIRE(view.results.size() == 3);
    CHECK(view.results[1]->document.size() > large.size() - 10);
    CHECK(view.results[1]->behind == 3);
    CHECK(view.results[2]->behind == 6);
    house.workspaces.close(house.who, open.workspace);
}

TEST_CASE("a runtime that does not answer about memory delays no execution of another workspace",
          "[unit][controller]") {
    Workbench open;
    House& house = open.house;
    house.loop.start();
    const std::string other = house.open(house.who, House::request()).id;
    open.runtime.holdUsage();
    const auto killed = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    house.executions.kill(house.who, killed->id());
    // Nobody calls wait(): the thread that reads all agents must notice the end.
    const auto quick = house.executions.start(house.who, other, command("echo there"));
    CHECK(eventually([&] { return quick->finished(); }));
    CHECK(quick->view().stdout_bytes == "there\n");
    CHECK_FALSE(killed->finished());
    open.runtime.letUse();
    CHECK(eventually([&] { return killed->finished(); }));
    CHECK(killed->view().status == ExecutionStatus::Killed);
    house.loop.stop();
}
