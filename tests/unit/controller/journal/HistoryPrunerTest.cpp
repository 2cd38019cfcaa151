#include "controller/journal/HistoryPruner.h"
#include "tests/support/Support.h"

using namespace hearth::controller;
using namespace hearth::test;

namespace {

constexpr std::int64_t kHour = 3600LL * 1000;
constexpr std::int64_t kNow = 100'000 * kHour;

struct PastWork {
    TempDir dir;
    Database database{dir.file("hearth.db")};

    void workspace(const std::string& id, std::optional<std::int64_t> ended_ms) {
        Statement(database,
                  "INSERT INTO workspaces (id, tenant, pool, sandbox, claim_id, fingerprint, name, "
                  "created_ms, ended_ms, reason) VALUES (?,'t','p','s','c','f','',0,?,'')")
            .bind(id)
            .bind(ended_ms)
            .run();
    }
    void execution(const std::string& id, const std::string& workspace, std::int64_t ended_ms) {
        Statement(database,
                  "INSERT INTO executions (id, workspace, tenant, fingerprint, document, output, "
                  "ended_ms, started_at) VALUES (?,?,'t','f','{}',x'00',?,'')")
            .bind(id)
            .bind(workspace)
            .bind(ended_ms)
            .run();
        Statement(database,
                  "INSERT INTO outputs (execution, kind, place, bytes) VALUES (?,0,0,'x')")
            .bind(id)
            .run();
    }
    void context(const std::string& id, const std::string& tenant, std::int64_t ended_ms) {
        Statement(database,
                  "INSERT INTO contexts (id, workspace, tenant, language, name, cwd, fingerprint, "
                  "created_ms, ended_ms, reason) VALUES (?,'w',?,'python','','','f',0,?,'')")
            .bind(id)
            .bind(tenant)
            .bind(ended_ms)
            .run();
    }
    void labels(const std::string& workspace) {
        Statement(database, "INSERT INTO meta (key, value) VALUES ('labels/' || ?, '{}')")
            .bind(workspace)
            .run();
    }
    std::int64_t count(const std::string& table) {
        Statement rows(database, "SELECT count(*) FROM " + table);
        rows.step();
        return rows.integer(0);
    }
    /// Prunes all that is due. Returns the number of slices.
    int prune(HistoryPruner& pruner, std::int64_t now, std::size_t slice) {
        for (int slices = 1;; ++slices) {
            const std::size_t before = pruner.looked();
            const bool more = pruner.prune(database, now);
            CHECK(pruner.looked() - before <= slice);
            if (!more) return slices;
        }
    }
};

}  // namespace

TEST_CASE("history goes an hour and a day after its workspace's end, in slices",
          "[unit][controller]") {
    PastWork history;
    history.database.execute("BEGIN");
    for (int i = 0; i < 20; ++i) {
        const std::string id = "old" + std::to_string(i);
        history.workspace(id, kNow - 2 * kHour);
        for (int e = 0; e < 5; ++e) {
            history.execution("ex-" + id + "-" + std::to_string(e), id, kNow - 3 * kHour);
        }
    }
    history.workspace("lives", std::nullopt);
    for (int e = 0; e < 30; ++e) {
        history.execution("ex-lives-" + std::to_string(e), "lives", kNow - 30 * kHour);
    }
    history.workspace("recent", kNow - kHour / 2);
    history.execution("ex-recent", "recent", kNow - 2 * kHour);
    history.execution("ex-stray", "nobody", kNow - 2 * kHour);
    history.execution("ex-stray-new", "nobody", kNow - kHour / 2);
    history.workspace("ancient", kNow - 25 * kHour);
    history.execution("ex-ancient", "ancient", kNow - 25 * kHour);
    history.database.execute("COMMIT");

    HistoryPruner pruner(16);
    CHECK(history.prune(pruner, kNow, 16) > 5);
    CHECK(history.count("executions") == 30 + 1 + 1);  // open, recent and new stray ones
    CHECK(history.count("outputs") == history.count("executions"));
    CHECK(history.count("workspaces") == 22);

    HistoryPruner anew(16);  // after a restart nothing more goes
    history.prune(anew, kNow, 16);
    CHECK(history.count("executions") == 32);

    history.prune(pruner, kNow + kHour, 16);
    CHECK(history.count("executions") == 30);
    history.prune(pruner, kNow + 30 * kHour, 16);
    CHECK(history.count("workspaces") == 1);
    CHECK(history.count("executions") == 30);
}

TEST_CASE("records that were checked once cost no later check, however many are kept",
          "[unit][controller]") {
    PastWork history;
    history.database.execute("BEGIN");
    history.workspace("lives", std::nullopt);
    for (int e = 0; e < 2000; ++e) {
        history.execution("ex-" + std::to_string(e), "lives", kNow - 5 * kHour);
    }
    for (int i = 0; i < 500; ++i) history.workspace("old" + std::to_string(i), kNow - 3 * kHour);
    history.database.execute("COMMIT");
    HistoryPruner pruner;
    history.prune(pruner, kNow, 256);
    const std::size_t before = pruner.looked();
    CHECK(before == 2500);
    CHECK(history.prune(pruner, kNow, 256) == 1);
    CHECK(pruner.looked() == before);
    CHECK(history.count("executions") == 2000);
}

TEST_CASE("the latest events stay", "[unit][controller]") {
    PastWork history;
    history.database.execute("BEGIN");
    for (int i = 1; i <= 10'300; ++i) {
        Statement(history.database,
                  "INSERT INTO events (id, time_ms, type, resource, pool, tenant, reason, message, "
                  "trace) VALUES (?,0,'','','','','','','')")
            .bind(std::int64_t{i})
            .run();
    }
    history.database.execute("COMMIT");
    HistoryPruner pruner;
    history.prune(pruner, kNow, 256);
    CHECK(history.count("events") == 10'000);
}

TEST_CASE("a tenant with many events loses its own oldest ones, not those of others",
          "[unit][controller]") {
    PastWork history;
    history.database.execute("BEGIN");
    const auto happen = [&](std::int64_t id, const char* tenant) {
        Statement(history.database,
                  "INSERT INTO events (id, time_ms, type, resource, pool, tenant, reason, message, "
                  "trace) VALUES (?,0,'','','',?,'','','')")
            .bind(id)
            .bind(tenant)
            .run();
    };
    for (std::int64_t id = 1; id <= 10; ++id) happen(id, "quiet");
    for (std::int64_t id = 11; id <= 50; ++id) happen(id, "busy");
    for (std::int64_t id = 51; id <= 130; ++id) happen(id, "loud");
    history.database.execute("COMMIT");
    HistoryPruner pruner(16, {.events = 60});
    history.prune(pruner, kNow, 16);
    CHECK(history.count("events WHERE tenant = 'quiet'") == 10);
    CHECK(history.count("events WHERE tenant = 'busy'") == 25);
    CHECK(history.count("events WHERE tenant = 'loud' AND id > 105") == 25);
    CHECK(history.count("events") == 60);
    history.database.execute("BEGIN");
    for (std::int64_t id = 131; id <= 140; ++id) happen(id, "quiet");
    history.database.execute("COMMIT");
    pruner.recount();
    history.prune(pruner, kNow, 16);
    CHECK(history.count("events WHERE tenant = 'quiet'") == 20);
    CHECK(history.count("events") == 60);
}

TEST_CASE("the latest ended contexts of a tenant stay, whatever another tenant has",
          "[unit][controller]") {
    PastWork history;
    HistoryPruner pruner(16, {.workspaces = 100, .contexts = 10});
    history.database.execute("BEGIN");
    for (int i = 0; i < 100; ++i) {  // left by ends whose removals failed
        history.context("old" + std::to_string(1000 + i), "a", kNow + i);
    }
    history.context("other", "b", kNow - kHour);
    pruner.contextsEnded(history.database, "b", 1);
    CHECK(history.count("contexts") == 101);
    for (int i = 0; i < 20; ++i) {
        history.context("new" + std::to_string(1000 + i), "a", kNow + 200 + i);
        pruner.contextsEnded(history.database, "a", 1);
    }
    history.database.execute("COMMIT");
    CHECK(history.count("contexts WHERE tenant = 'a'") == 10);
    CHECK(history.count("contexts WHERE id >= 'new1010' AND tenant = 'a'") == 10);
    CHECK(history.count("contexts WHERE tenant = 'b'") == 1);

    pruner.recount();
    history.context("last", "a", kNow + 300);
    pruner.contextsEnded(history.database, "a", 1);
    CHECK(history.count("contexts WHERE tenant = 'a'") == 10);
    history.prune(pruner, kNow + 30 * kHour, 16);  // contexts that go by age are not counted
    for (int i = 0; i < 10; ++i) {
        history.context("later" + std::to_string(i), "a", kNow + 30 * kHour);
        pruner.contextsEnded(history.database, "a", 1);
    }
    CHECK(history.count("contexts") == 10);
}

TEST_CASE("executions of a workspace beyond those that are kept still have their hour",
          "[unit][controller]") {
    PastWork history;
    HistoryPruner pruner(64, {.workspaces = 2, .contexts = 10});
    history.workspace("first", std::nullopt);
    for (int i = 0; i < 40; ++i) {
        history.execution("ex-seen-" + std::to_string(i), "first", kNow - 2 * kHour);
    }
    history.execution("ex-recent", "first", kNow - kHour / 2);
    history.prune(pruner, kNow, 64);
    CHECK(history.count("executions") == 41);
    Statement(history.database, "UPDATE workspaces SET ended_ms = ?").bind(kNow).run();
    pruner.workspaceEnded(history.database, "t");
    for (int i = 0; i < 6; ++i) {
        history.workspace("next" + std::to_string(i), kNow + i);
        pruner.workspaceEnded(history.database, "t");
    }
    CHECK(history.count("workspaces") == 2);
    CHECK(history.count("workspaces WHERE id IN ('next4', 'next5')") == 2);
    CHECK(history.count("executions") == 1);
    history.prune(pruner, kNow + kHour, 64);
    CHECK(history.count("executions") == 0);
}

TEST_CASE("labels go with ended workspaces, and later with unknown ones", "[unit][controller]") {
    PastWork history;
    history.database.execute("BEGIN");
    for (int i = 0; i < 40; ++i) {
        const std::string id = "ended" + std::to_string(i);
        history.workspace(id, kNow - 1000);
        history.labels(id);
        history.workspace("lives" + std::to_string(i), std::nullopt);
        history.labels("lives" + std::to_string(i));
    }
    history.labels("unknown");
    Statement(history.database, "INSERT INTO meta (key, value) VALUES ('key', 'v'), ('m', 'v')")
        .run();
    history.database.execute("COMMIT");
    HistoryPruner pruner(16);
    history.prune(pruner, kNow, 16);
    CHECK(history.count("meta WHERE key LIKE 'labels/ended%'") == 0);
    CHECK(history.count("meta WHERE key LIKE 'labels/lives%'") == 40);
    CHECK(history.count("meta WHERE key = 'labels/unknown'") == 1);  // its row may be on its way
    const std::size_t before = pruner.looked();
    history.prune(pruner, kNow + kHour / 4, 16);
    CHECK(pruner.looked() == before);
    history.prune(pruner, kNow + 25 * kHour, 16);
    CHECK(history.count("meta WHERE key = 'labels/unknown'") == 0);
    CHECK(history.count("meta") == 40 + 2);
}
