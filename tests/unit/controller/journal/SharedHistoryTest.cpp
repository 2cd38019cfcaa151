#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "controller/journal/Journal.h"
#include "controller/journal/SharedHistory.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

struct SharedDesk : Desk {
    const std::string folder = dir.file("shared");

    std::int64_t now() const { return toUnixMillis(clock.wall()); }
    std::size_t count(const std::string& kind) const {
        std::size_t found = 0;
        for (const auto& entry : fs::directory_iterator(folder)) {
            found += entry.path().filename().string().starts_with(kind + "-") ? 1 : 0;
        }
        return found;
    }
};

/// One replica with a database of its own.
class Replica {
public:
    Replica(SharedDesk& desk, const std::string& name, std::uint64_t grown = 64U << 20U)
        : desk_(desk),
          path_(desk.dir.file(name + ".db")),
          shared_(std::make_unique<SharedHistory>(
              desk.folder, path_, [this] { return leads.load(); }, desk.log, grown)) {}

    void catchUp() {
        Database database(path_);
        shared_->catchUp(database);
    }
    Journal& lead(std::uint64_t term) {
        {
            Database database(path_);
            shared_->lead(database, term);
        }
        JournalLimits limits;
        limits.shared = shared_.get();
        journal_ = std::make_unique<Journal>(path_, desk_.clock, desk_.log, limits);
        return *journal_;
    }
    /// Acts like a process that starts again.
    void end() {
        journal_.reset();
        shared_ = std::make_unique<SharedHistory>(
            desk_.folder, path_, [this] { return leads.load(); }, desk_.log);
    }
    /// Returns whether its own database has this workspace.
    bool has(const std::string& workspace) const {
        Database database(path_);
        Statement row(database, "SELECT 1 FROM workspaces WHERE id = ?");
        return row.bind(workspace).step();
    }
    const std::string& path() const { return path_; }
    std::atomic<bool> leads = true;

private:
    SharedDesk& desk_;
    const std::string path_;
    std::unique_ptr<SharedHistory> shared_;
    std::unique_ptr<Journal> journal_;
};

void record(Journal& journal, const std::string& n) {
    journal.record(workspaceRecord(n));
    REQUIRE(journal.workspace("ws_" + n));  // a read waits for the write
}

bool refuses(Journal& journal) {
    try {
        journal.setMeta("k", "v");
    } catch (const Error& e) {
        return e.code() == ErrorCode::Unavailable;
    }
    return false;
}

}  // namespace

TEST_CASE("the next leader has the commits of the last one", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    {
        Journal& journal = first.lead(1);
        record(journal, "1");
        record(journal, "2");
        journal.ended("ws_2", desk.now(), "idle");
        journal.labels("ws_1", {{"a", "b"}});
        std::atomic<bool> durable = false;
        journal.record(
            ExecutionRecord{"ex_1", "ws_2", "t", "f", "{}", kOutputApart, desk.now()},
            [&](bool written) { durable = written; },
            [](const Journal::PutPiece& put) {
                put(Journal::Piece::Output, 0, std::string(300'000, 'x'));
            });
        REQUIRE(journal.execution("ex_1"));
        CHECK(durable);
    }
    first.end();
    Journal& next = second.lead(2);
    CHECK_FALSE(next.workspace("ws_1")->ended_ms);
    CHECK(next.workspaceByClaim("cl_2")->reason == "idle");
    CHECK(next.labels("ws_1") == std::map<std::string, std::string>{{"a", "b"}});
    CHECK(next.execution("ex_1")->fingerprint == "f");
    CHECK(next.outputAt("ex_1", 0) == std::string(300'000, 'x'));
    // The history also goes back to the first replica.
    next.ended("ws_1", desk.now(), "deleted");
    next.flush(5s);
    second.end();
    Journal& again = first.lead(3);
    REQUIRE(again.workspace("ws_1"));
    CHECK(again.workspace("ws_1")->reason == "deleted");
}

TEST_CASE("a replica that stands by follows while the other leads", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    second.catchUp();  // nobody has led yet
    Journal& journal = first.lead(1);
    for (int n = 0; n < 20; ++n) {
        record(journal, std::to_string(n));
        second.catchUp();
        CHECK(second.has("ws_" + std::to_string(n)));
    }
    second.catchUp();
    CHECK(second.has("ws_0"));
}

TEST_CASE("a failed transaction reaches no other replica", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    Journal& journal = first.lead(1);
    CHECK_THROWS(journal.writeNow([](Database& database) {
        Journal::putMeta(database, "half", "done");
        throw std::runtime_error("no");
    }));
    journal.setMeta("whole", "done");
    second.catchUp();
    Journal& next = second.lead(2);
    CHECK(next.meta("half").empty());
    CHECK(next.meta("whole") == "done");
}

TEST_CASE("a transaction that the shared volume refuses is not committed, and is tried again",
          "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first", 1);  // so that nearly each change begins a file
    Journal& journal = first.lead(1);
    journal.setMeta("k", "before");
    journal.setMeta("k", "still");
    fs::rename(desk.folder, desk.folder + ".away");
    CHECK(refuses(journal));
    CHECK(journal.meta("k") == "still");
    journal.record(workspaceRecord("1"));
    fs::rename(desk.folder + ".away", desk.folder);
    journal.flush(5s);
    REQUIRE(eventually([&] { return first.has("ws_1"); }));
    Replica second(desk, "second");
    second.catchUp();
    CHECK(second.has("ws_1"));
}

TEST_CASE("a leader in doubt writes nothing, and its published transaction is committed later",
          "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    Journal& journal = first.lead(1);
    journal.setMeta("k", "before");
    first.leads = false;
    CHECK(refuses(journal));
    first.leads = true;
    CHECK_THROWS_AS(journal.writeNow([&](Database& database) {
        Journal::putMeta(database, "k", "told");
        first.leads = false;  // while it is being written to the volume
    }),
                    Error);
    CHECK(journal.meta("k") == "before");
    second.catchUp();  // other replicas may know the change by now
    first.leads = true;
    journal.setMeta("other", "v");
    CHECK(journal.meta("k") == "told");
    Journal& next = second.lead(2);
    CHECK(next.meta("k") == "told");
    CHECK(next.meta("other") == "v");
}

TEST_CASE("half a record hides no other, and later writes of a former leader are void",
          "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    Journal& old = first.lead(1);
    record(old, "known");
    const std::string segment = desk.folder + "/changes-00000000000000000001-0000000001";
    {
        std::ofstream file(segment, std::ios::app | std::ios::binary);
        file << std::string("\x10\0\0\0", 4) << "half";
    }
    Journal& now = second.lead(2);
    CHECK(second.has("ws_known"));
    record(now, "new");
    record(old, "void");
    CHECK(first.has("ws_void"));  // it does not know yet that another leads
    Replica third(desk, "third");
    third.catchUp();
    CHECK(third.has("ws_known"));
    CHECK(third.has("ws_new"));
    CHECK_FALSE(third.has("ws_void"));
    first.end();
    first.catchUp();
    CHECK(first.has("ws_new"));
    CHECK_FALSE(first.has("ws_void"));
}

TEST_CASE("a term begins once", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    Replica second(desk, "second");
    first.lead(1'795'727'130'148);
    CHECK_THROWS_AS(second.lead(1'795'727'130'148), Error);
    second.lead(1'795'727'130'151);  // terms may skip numbers
}

TEST_CASE("a log that has grown long becomes a copy", "[unit][controller]") {
    SharedDesk desk;
    Replica behind(desk, "behind");
    Replica first(desk, "first", 20'000);
    Journal& journal = first.lead(1);
    record(journal, "first");
    behind.catchUp();
    for (int n = 0; n < 400; ++n) journal.record(workspaceRecord(std::to_string(n)));
    journal.ended("ws_first", desk.now(), "idle");
    journal.flush(5s);
    for (int n = 0; n < 100; ++n) record(journal, "later" + std::to_string(n));
    REQUIRE(eventually(
        [&] { return !fs::exists(desk.folder + "/changes-00000000000000000001-0000000001"); }));
    CHECK(desk.count("snapshot") == 1);
    record(journal, "last");
    Replica fresh(desk, "fresh");
    for (Replica* each : {&behind, &fresh}) {
        each->catchUp();
        for (const char* name : {"ws_first", "ws_399", "ws_later99", "ws_last"}) {
            CHECK(each->has(name));
        }
    }
    Journal& next = fresh.lead(2);
    CHECK(next.workspace("ws_first")->reason == "idle");
}

TEST_CASE("a leader's earlier history reaches the other replicas", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    {
        Journal alone(first.path(), desk.clock, desk.log);
        alone.record(workspaceRecord("old"));
    }
    first.lead(1);
    Replica second(desk, "second");
    {
        Journal alone(second.path(), desk.clock, desk.log);
        alone.record(workspaceRecord("mine"));
    }
    second.catchUp();
    CHECK(second.has("ws_old"));
    CHECK_FALSE(second.has("ws_mine"));
}

TEST_CASE("a copy of another schema is refused with what to do", "[unit][controller]") {
    SharedDesk desk;
    Replica first(desk, "first");
    record(first.lead(1), "a");
    first.end();
    // The copy is the newest file of its kind.
    for (const auto& entry : fs::directory_iterator(desk.folder)) {
        if (!entry.path().filename().string().starts_with("snapshot-")) continue;
        Database copy(entry.path());
        copy.execute("PRAGMA user_version = 7");
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)");
        copy.execute("PRAGMA journal_mode = DELETE");
    }
    Replica second(desk, "second");
    CHECK_THROWS_WITH(second.catchUp(),
                      "the shared history has schema 7, and this Hearth reads only schema 1: give "
                      "all replicas one version, or an empty folder");
    CHECK_FALSE(second.has("ws_a"));
}

TEST_CASE("a folder that cannot serve is refused by its name", "[unit][controller]") {
    SharedDesk desk;
    CHECK_THROWS_AS(SharedHistory(
                        "/nowhere/at/all", desk.dir.file("a.db"), [] { return true; }, desk.log),
                    Error);
}
