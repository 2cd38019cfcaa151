#include <atomic>

#include "controller/Journal.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

struct Desk {
    TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    const std::string path = dir.file("hearth.db");

    std::size_t movedAside() const {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
            const std::string name = entry.path().filename().string();
            count += name.find(".damaged-") != std::string::npos ? 1 : 0;
        }
        return count;
    }
};

WorkspaceRecord workspaceRecord(const std::string& n) {
    return {"ws_" + n, "t", "p", "sb_" + n, "cl_" + n, "f", "name", 1000, std::nullopt, ""};
}

}  // namespace

TEST_CASE("what was recorded is read at once and after a restart", "[unit][controller]") {
    Desk desk;
    const std::string bytes("out\0put\xff", 8);
    {
        Journal journal(desk.path, desk.clock, desk.log);
        journal.record(workspaceRecord("1"));
        REQUIRE(journal.workspace("ws_1"));  // it waits for what was queued before
        CHECK_FALSE(journal.workspace("ws_1")->ended_ms);
        journal.ended("ws_1", 1900, "lost", "sb_0");  // the end of its claim's first attempt
        journal.ended("ws_1", 2000, "idle", "sb_1");
        journal.ended("ws_1", 3000, "deleted");  // the first end stays
        journal.record(ExecutionRecord{"ex_1", "ws_1", "t", "f", "{}", bytes, 1500}, {});
        journal.record(ExecutionRecord{"ex_2", "ws_1", "t", "f", "{}", "", 1600}, {});
        journal.setMeta("epoch", "7");
    }
    Journal journal(desk.path, desk.clock, desk.log);
    const auto workspace = journal.workspaceByClaim("cl_1");
    REQUIRE(workspace);
    CHECK(workspace->id == "ws_1");
    CHECK(workspace->sandbox == "sb_1");
    CHECK(workspace->ended_ms == 2000);
    CHECK(workspace->reason == "idle");
    REQUIRE(journal.execution("ex_1"));
    CHECK(journal.execution("ex_1")->output == bytes);
    const auto executions = journal.executionsOf("ws_1");
    REQUIRE(executions.size() == 2);
    CHECK(executions[0].id == "ex_2");  // newest first
    CHECK(journal.meta("epoch") == "7");
    CHECK(journal.meta("nothing").empty());
    CHECK_FALSE(journal.workspace("ws_2"));
    CHECK_FALSE(journal.execution("ex_9"));
    CHECK(desk.movedAside() == 0);
}

TEST_CASE("callbacks come after the commit and say whether it held", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    std::atomic<int> kept{-1};
    journal.record(ExecutionRecord{"ex_1", "ws", "t", "f", "{}", "", 1'700'000'000'000},
                   [&](bool durable) { kept = durable ? 1 : 0; });
    CHECK(eventually([&] { return kept != -1; }));
    CHECK(kept == 1);
    CHECK(journal.execution("ex_1"));
    std::atomic<int> failed{-1};
    journal.write([](Database&) { throw std::runtime_error("no"); },
                  [&](bool durable) { failed = durable ? 0 : 1; });
    CHECK(eventually([&] { return failed != -1; }));
    CHECK(failed == 1);
    journal.record(workspaceRecord("2"));  // and it goes on
    CHECK(journal.workspace("ws_2"));
}

TEST_CASE("a declared change that fails leaves nothing and is told", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    CHECK_THROWS_AS(journal.writeNow([](Database& database) {
        Statement(database, "INSERT INTO meta (key, value) VALUES ('a','b')").run();
        throw std::runtime_error("no");
    }),
                    std::runtime_error);
    CHECK(journal.meta("a").empty());
    journal.setMeta("a", "c");
    CHECK(journal.meta("a") == "c");
}

TEST_CASE("a damaged data file is moved aside and begun anew", "[unit][controller]") {
    Desk desk;
    writeText(desk.path, std::string(8192, 'x'));
    Journal journal(desk.path, desk.clock, desk.log);
    journal.record(workspaceRecord("1"));
    CHECK(journal.workspace("ws_1"));
    CHECK(desk.movedAside() == 1);
}

TEST_CASE("a data file that cannot be opened is left where it is", "[unit][controller]") {
    Desk desk;
    std::filesystem::create_directory(desk.path);
    CHECK_THROWS_AS(Journal(desk.path, desk.clock, desk.log), std::runtime_error);
    CHECK(desk.movedAside() == 0);
    CHECK_THROWS_AS(Journal(desk.dir.file("none/hearth.db"), desk.clock, desk.log),
                    std::runtime_error);
}

TEST_CASE("a tenant who fills the journal with output loses its own and nobody else's",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, 100'000);
    const auto record = [&](const std::string& id, const std::string& tenant, std::size_t size) {
        journal.record(
            ExecutionRecord{id, "ws_" + tenant, tenant, "f", "{}", std::string(size, 'x'), 1500},
            {});
    };
    for (const char* tenant : {"a", "b"}) journal.record(workspaceRecord(tenant));
    record("ex_quiet", "b", 20'000);
    record("ex_small", "a", 100);
    for (int i = 0; i < 200; ++i) record("ex_" + std::to_string(i), "a", 10'000);
    journal.flush(30s);
    CHECK(journal.execution("ex_quiet")->output.size() == 20'000);
    REQUIRE(journal.execution("ex_0"));  // who repeats its key is still answered
    CHECK(journal.execution("ex_0")->output == kNoOutput);
    std::size_t kept = 0;
    for (const ExecutionRecord& each : journal.executionsOf("ws_a")) kept += each.output.size();
    CHECK(kept <= 100'000);
}

TEST_CASE("a list of executions has no long output in it", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    journal.record(workspaceRecord("1"));
    for (int i = 0; i < 3; ++i) {
        journal.record(ExecutionRecord{"ex_" + std::to_string(i), "ws_1", "t", "f", "{}",
                                       std::string(i == 1 ? 1U << 20U : 1000U, 'x'), 1000 + i},
                       {});
    }
    const auto executions = journal.executionsOf("ws_1");
    REQUIRE(executions.size() == 3);
    CHECK(executions[0].id == "ex_2");
    CHECK(executions[0].output.size() == 1000);
    CHECK(executions[1].output == kNoOutput);
    CHECK(journal.execution("ex_1")->output.size() == 1U << 20U);
}

TEST_CASE("output that is kept apart is found by its place, counted, and shed with the rest",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, 100'000);
    const auto record = [&](const std::string& id, std::size_t size) {
        journal.record(ExecutionRecord{id, "ws_1", "t", "f", "{}", {}, 1'700'000'000'000}, {},
                       [size](const Journal::PutPiece& put) {
                           put(Journal::Piece::Output, 5, "first");
                           put(Journal::Piece::Output, 50, std::string(size, 'x'));
                           put(Journal::Piece::Result, 0, "result");
                       });
    };
    record("ex_1", 10);
    REQUIRE(journal.execution("ex_1")->output == kOutputApart);
    CHECK_FALSE(journal.outputAt("ex_1", 4));
    CHECK(journal.outputAt("ex_1", 5) == "first");
    CHECK(journal.outputAt("ex_1", 49) == "first");
    CHECK(journal.outputAt("ex_1", UINT64_MAX)->size() == 10);
    CHECK(journal.outputBehind("ex_1", 5)->size() == 10);
    CHECK_FALSE(journal.outputBehind("ex_1", 50));
    CHECK(journal.resultOf("ex_1", 0) == "result");
    CHECK_FALSE(journal.resultOf("ex_1", 1));
    CHECK_FALSE(journal.outputAt("ex_2", 5));
    record("ex_1", 20);  // again: the first one's pieces are gone
    CHECK(journal.execution("ex_1"));
    CHECK(journal.outputAt("ex_1", 50)->size() == 20);

    record("ex_large", 200'000);
    CHECK(journal.execution("ex_large")->output == kNoOutput);
    CHECK_FALSE(journal.outputAt("ex_large", 50));
}
