#include <atomic>
#include <nlohmann/json.hpp>

#include "base/Json.h"
#include "controller/journal/Journal.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

std::size_t movedAside(const Desk& desk) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(desk.dir.path())) {
        const std::string name = entry.path().filename().string();
        count += name.find(".damaged-") != std::string::npos ? 1 : 0;
    }
    return count;
}

/// Stops the data file from growing, like a full disk, or lets it grow again.
void fill(Journal& journal, bool full) {
    journal.writeNow([&](Database& database) {
        database.execute(full ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 1000000");
    });
}

}  // namespace

TEST_CASE("a record is readable at once and after a restart", "[unit][controller]") {
    Desk desk;
    const std::string bytes("out\0put\xff", 8);
    {
        Journal journal(desk.path, desk.clock, desk.log);
        journal.record(workspaceRecord("1"));
        REQUIRE(journal.workspace("ws_1"));  // a read waits for all writes queued before
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
    CHECK(movedAside(desk) == 0);
}

TEST_CASE("callbacks come after the commit and report its success", "[unit][controller]") {
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
    journal.record(workspaceRecord("2"));  // the journal goes on
    CHECK(journal.workspace("ws_2"));
}

TEST_CASE("a declared change that fails leaves no record and throws", "[unit][controller]") {
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

TEST_CASE("a damaged data file is reported, and left to the holder of the instance",
          "[unit][controller]") {
    Desk desk;
    writeText(desk.path, std::string(8192, 'x'));
    CHECK_THROWS_AS(Journal(desk.path, desk.clock, desk.log), DamagedDatabase);
    CHECK(movedAside(desk) == 0);
    CHECK(readText(desk.path) == std::string(8192, 'x'));
}

TEST_CASE("records that must survive a loss of power are synced at commit, others are not",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    const auto level = [](Database& database) {
        Statement row(database, "PRAGMA synchronous");
        return row.step() ? row.integer(0) : -1;
    };
    constexpr std::int64_t kNormal = 1;
    constexpr std::int64_t kFull = 2;
    journal.writeSynced([&](Database& database) { CHECK(level(database) == kFull); });
    journal.writeNow([&](Database& database) { CHECK(level(database) == kNormal); });
    CHECK_THROWS(journal.writeSynced([](Database&) { throw std::runtime_error("no"); }));
    journal.writeNow([&](Database& database) { CHECK(level(database) == kNormal); });
}

TEST_CASE("a data file that cannot be opened is left where it is", "[unit][controller]") {
    Desk desk;
    std::filesystem::create_directory(desk.path);
    CHECK_THROWS_AS(Journal(desk.path, desk.clock, desk.log), std::runtime_error);
    CHECK(movedAside(desk) == 0);
    CHECK_THROWS_AS(Journal(desk.dir.file("none/hearth.db"), desk.clock, desk.log),
                    std::runtime_error);
}

TEST_CASE("a tenant that fills the journal with output loses only its own", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.output = 100'000});
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
    REQUIRE(journal.execution("ex_0"));  // a repeated key is still answered
    int shed = 0;
    for (int i = 0; i < 200; ++i) {
        if (journal.execution("ex_" + std::to_string(i))->output == kNoOutput) ++shed;
    }
    CHECK(shed > 190);
    std::size_t kept = 0;
    for (const ExecutionLine& each : journal.executionsOf("ws_a")) {
        kept += journal.listedExecution(each.id)->output.size();
    }
    CHECK(kept <= 100'000);
}

TEST_CASE(
    "records without output count, too, and lose their artifacts before the oldest records go",
    "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.output = 100'000});
    const auto record = [&](int i, const std::string& document) {
        journal.record(
            ExecutionRecord{"ex_" + std::to_string(i), "ws_a", "a", "f", document, "", 1500 + i},
            {});
    };
    journal.record(workspaceRecord("a"));
    for (int i = 0; i < 100; ++i) {
        record(i, R"({"status":"ok","artifacts":[")" + std::string(20'000, 'x') + R"("]})");
    }
    journal.flush(30s);
    const std::string bare = R"({"status":"ok","artifacts":[],"artifactsTruncated":true})";
    int shortened = 0;
    for (int i = 0; i < 100; ++i) {
        REQUIRE(journal.execution("ex_" + std::to_string(i)));
        if (journal.execution("ex_" + std::to_string(i))->document == bare) ++shortened;
    }
    CHECK(shortened > 90);
    CHECK(shortened < 100);
    // These records are too short to be shortened further.
    for (int i = 100; i < 200; ++i) record(i, R"({"note":")" + std::string(5'000, 'x') + "\"}");
    journal.flush(30s);
    CHECK_FALSE(journal.execution("ex_0"));
    std::size_t kept = 0;
    for (int i = 0; i < 200; ++i) {
        const auto found = journal.execution("ex_" + std::to_string(i));
        if (found) kept += found->document.size();
    }
    CHECK(kept <= 100'000);
}

TEST_CASE("a tenant whose records have no output left loses records before another loses output",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.output = 400'000});
    const auto record = [&](const std::string& tenant, int i, const std::string& document,
                            const std::string& output) {
        journal.record(ExecutionRecord{"ex_" + tenant + std::to_string(i), "ws_" + tenant, tenant,
                                       "f", document, output, 1500 + i},
                       {});
    };
    for (const char* tenant : {"quiet", "loud"}) journal.record(workspaceRecord(tenant));
    for (int i = 0; i < 5; ++i) record("quiet", i, "{}", std::string(20'000, 'x'));
    const std::string document = R"({"note":")" + std::string(5'000, 'm') + "\"}";
    for (int i = 0; i < 400; ++i) record("loud", i, document, "x");
    journal.flush(30s);
    for (int i = 0; i < 5; ++i) {
        const auto kept = journal.execution("ex_quiet" + std::to_string(i));
        REQUIRE(kept);
        CHECK(kept->output.size() == 20'000);
    }
    CHECK_FALSE(journal.execution("ex_loud0"));
    CHECK(journal.execution("ex_loud399"));  // the oldest go
}

TEST_CASE("a record whose output is shed keeps the beginning of its error and of its packages",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.output = 100'000});
    Json document = {{"status", "error"},
                     {"error",
                      {{"name", "E"},
                       {"message", "begins" + std::string(20'000, 'm')},
                       {"traceback", std::string(20'000, 't') + "ends"},
                       {"more", std::string(20'000, 'o')}}},
                     {"packages", {{"done", false}}}};
    for (int i = 100; i < 200; ++i) {
        const std::string number = std::to_string(i);
        document["packages"]["installed"]["p" + number] = std::string(100, '1');
        document["packages"]["notInstalled"]["n" + number] = std::string(200, 'w');
    }
    journal.record(workspaceRecord("1"));
    journal.record(ExecutionRecord{"ex_1", "ws_1", "t", "f", document.dump(), "x", 1500}, {});
    journal.record(ExecutionRecord{"ex_2", "ws_1", "t", "f", "{}", std::string(90'000, 'x'), 1501},
                   {});
    journal.flush(30s);
    const auto kept = journal.execution("ex_1");
    REQUIRE(kept);
    REQUIRE(kept->document.size() < 8192);
    const Json left = parseJson(kept->document);
    CHECK(left["status"] == "error");
    CHECK(left["error"]["name"] == "E");
    CHECK(left["error"]["message"].get<std::string>().starts_with("begins"));
    CHECK(left["error"]["traceback"].get<std::string>().ends_with("ends"));
    CHECK(left["packages"]["done"] == false);
    CHECK(left["packages"]["installed"].contains("p100"));
    CHECK_FALSE(left["packages"]["installed"].contains("p199"));
    CHECK_FALSE(left["packages"]["notInstalled"].contains("n199"));
}

TEST_CASE("the index holds every field of a list of executions", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    journal.record(workspaceRecord("1"));
    for (int i = 0; i < 3; ++i) {
        journal.record(ExecutionRecord{"ex_" + std::to_string(i), "ws_1", "t", "f", "{}", "",
                                       1000 + i, "start " + std::to_string(i)},
                       {});
    }
    const auto lines = journal.executionsOf("ws_1");
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].id == "ex_2");
    CHECK(lines[0].tenant == "t");
    CHECK(lines[0].started_at == "start 2");
    std::string plan;
    journal.read([&](Database& database) {
        Statement row(database,
                      "EXPLAIN QUERY PLAN SELECT id, tenant, started_at FROM executions "
                      "WHERE workspace = 'ws_1' ORDER BY ended_ms DESC, id DESC LIMIT 200");
        while (row.step()) plan += row.text(3);
    });
    CHECK(plan == "SEARCH executions USING COVERING INDEX executions_listed (workspace=?)");
}

TEST_CASE("output in separate pieces is found by its place, counted, and shed with the rest",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.output = 100'000});
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
    record("ex_1", 20);  // written again: the first one's pieces are gone
    CHECK(journal.execution("ex_1"));
    CHECK(journal.outputAt("ex_1", 50)->size() == 20);

    record("ex_large", 200'000);
    CHECK(journal.execution("ex_large")->output == kNoOutput);
    CHECK_FALSE(journal.outputAt("ex_large", 50));
}

TEST_CASE("a change on a full disk fails with DISK_FULL, and the next one works",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    fill(journal, true);
    const std::string large(1U << 20U, 'x');
    for (int i = 0; i < 3; ++i) {
        CHECK(codeOf([&] { journal.setMeta("large", large); }) == ErrorCode::DiskFull);
    }
    CHECK(journal.meta("large").empty());
    fill(journal, false);
    journal.setMeta("large", large);
    CHECK(journal.meta("large") == large);
}

TEST_CASE("records that a full disk refuses are kept in a bounded queue", "[unit][controller]") {
    Desk desk;
    metrics::Metrics metrics;
    Journal journal(desk.path, desk.clock, desk.log, {.pending = 3U << 20U, .metrics = &metrics});
    fill(journal, true);
    std::atomic<int> durable{0};
    std::atomic<int> lost{0};
    const auto record = [&](int i) {
        journal.record(workspaceRecord(std::to_string(i)));
        journal.record(ExecutionRecord{"ex_" + std::to_string(i), "ws_" + std::to_string(i), "t",
                                       "f", "{}", std::string(1U << 20U, 'x'), 1500},
                       [&](bool held) { ++(held ? durable : lost); });
    };
    record(0);
    journal.requireRoom("t");
    for (int i = 1; i < 4; ++i) record(i);
    const auto refused = codeOf([&] { journal.requireRoom("t"); });
    CHECK(refused == ErrorCode::Unavailable);
    CHECK_NOTHROW(journal.requireRoom("other"));  // this tenant's results do not wait
    CHECK(eventually([&] {
        return metrics.render().find("\nhearth_journal_write_failures_total 0\n") ==
               std::string::npos;
    }));
    CHECK(durable == 0);
    fill(journal, false);
    CHECK(eventually([&] { return durable == 4; }));
    CHECK(lost == 0);
    CHECK(eventually([&] { return !codeOf([&] { journal.requireRoom("t"); }); }));
    for (int i = 0; i < 4; ++i) {
        CHECK(journal.execution("ex_" + std::to_string(i))->output.size() == 1U << 20U);
        CHECK(eventually([&] { return journal.workspace("ws_" + std::to_string(i)).has_value(); }));
    }
}

TEST_CASE("ended contexts of a tenant are bounded at once", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.ended = {.workspaces = 3, .contexts = 5}});
    const std::int64_t now = toUnixMillis(desk.clock.wall());  // nothing is removed by its age
    const auto count = [&](const std::string& table) {
        journal.flush(10s);
        std::int64_t rows = 0;
        journal.read([&](Database& database) {
            Statement all(database, "SELECT count(*) FROM " + table);
            all.step();
            rows = all.integer(0);
        });
        return rows;
    };
    const auto context = [&](const std::string& id, const std::string& workspace) {
        journal.record(
            ContextRecord{id, workspace, "t", "python", "", "/", "f", 1000, std::nullopt, ""});
    };
    for (int i = 0; i < 20; ++i) {
        const std::string id = "cx_" + std::to_string(100 + i);
        context(id, "ws_1");
        journal.contextEnded(id, now + i, "deleted");
    }
    CHECK(count("contexts") == 5);
    CHECK(journal.context("cx_119"));
    CHECK_FALSE(journal.context("cx_114"));
    for (int i = 0; i < 20; ++i) context("cx_open" + std::to_string(i), "ws_1");
    CHECK(count("contexts") == 25);  // open contexts are not counted
    journal.record(workspaceRecord("1"));
    journal.ended("ws_1", now + 100, "deleted");
    CHECK(count("contexts") == 5);
    for (int i = 2; i < 20; ++i) {
        journal.record(workspaceRecord(std::to_string(i)));
        journal.ended("ws_" + std::to_string(i), now + 100 + i, "deleted");
    }
    CHECK(count("workspaces") == 3);
    CHECK(journal.workspace("ws_19"));
}

TEST_CASE("records of contexts that wait for the disk count for their tenant with all they hold",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.pending = 1U << 20U});
    fill(journal, true);
    for (int i = 0; i < 300; ++i) {
        journal.record(ContextRecord{"cx_" + std::to_string(i), "ws_1", "t", "python", "",
                                     std::string(4000, 'x'), "f", 1000, std::nullopt, ""});
    }
    CHECK(codeOf([&] { journal.requireRoom("t"); }) == ErrorCode::Unavailable);
    CHECK_NOTHROW(journal.requireRoom("other"));
    fill(journal, false);
    CHECK(eventually([&] { return journal.context("cx_299").has_value(); }));
    CHECK(eventually([&] { return !codeOf([&] { journal.requireRoom("t"); }); }));
}

TEST_CASE("results of a tenant that wait for the disk shut out no other tenant, however large",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log, {.pending = 1U << 20U});
    const auto record = [&](const std::string& id, const std::string& tenant, std::size_t size) {
        journal.record(ExecutionRecord{id, "ws_1", tenant, "f", "{}", std::string(size, 'x'), 1500},
                       {});
    };
    fill(journal, true);
    for (int i = 0; i < 16; ++i) record("ex_loud" + std::to_string(i), "loud", 1U << 20U);
    CHECK(codeOf([&] { journal.requireRoom("loud"); }) == ErrorCode::Unavailable);
    CHECK_NOTHROW(journal.requireRoom("quiet"));
    journal.record(Event{.id = 7, .type = "execution.finished", .tenant = "quiet"}, 1000);
    const auto everyone = [&] { return codeOf([&] { journal.requireRoom("quiet"); }); };
    int others = 0;
    for (; others < 100 && !everyone(); ++others) {
        record("ex_" + std::to_string(others), "t" + std::to_string(others), 1U << 20U);
    }
    CHECK(others > 16);
    CHECK(others < 50);  // all tenants together are bounded, too
    fill(journal, false);
    CHECK(eventually([&] { return !everyone(); }));
    std::int64_t events = 0;
    journal.flush(10s);
    journal.read([&](Database& database) {
        Statement rows(database, "SELECT count(*) FROM events WHERE id = 7");
        rows.step();
        events = rows.integer(0);
    });
    CHECK(events == 1);
    CHECK(eventually([&] { return journal.hasExecution("ex_loud15"); }));
}

TEST_CASE("labels that come after the end of their workspace are not kept", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    journal.record(workspaceRecord("1"));
    journal.labels("ws_1", {{"a", "b"}});
    CHECK(journal.labels("ws_1") == std::map<std::string, std::string>{{"a", "b"}});
    journal.ended("ws_1", 2000, "deleted", "sb_1");
    journal.flush(10s);
    journal.labels("ws_1", {{"a", "c"}});
    journal.flush(10s);
    CHECK_FALSE(journal.labels("ws_1"));

    // The next attempt of the same claim has the same id.
    WorkspaceRecord again = workspaceRecord("1");
    again.sandbox = "sb_2";
    journal.record(again);
    journal.labels("ws_1", {{"a", "d"}});
    CHECK(journal.labels("ws_1") == std::map<std::string, std::string>{{"a", "d"}});
    journal.labels("ws_unknown", {{"e", "f"}});  // its record may be lost with the file
    CHECK(journal.labels("ws_unknown"));
}
