#include <fcntl.h>
#include <sys/stat.h>

#include "controller/executions/ArtifactStore.h"
#include "controller/journal/Journal.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kBlock = 4096;

/// A store with the parts that it uses. The table has none of its workspaces, so that the journal
/// alone says which of them have ended.
struct Shelf {
    explicit Shelf(ArtifactStore::Limits most = {}) : limits(most) {}

    ArtifactStore& store() {
        if (!made) {
            made = std::make_unique<ArtifactStore>(dir.file("artifacts"), table, journal, log,
                                                   clock, limits);
        }
        return *made;
    }
    void restart() {
        made.reset();
        store();
    }
    void live(const std::string& tenant, const std::string& workspace) {
        journal.record(WorkspaceRecord{workspace, tenant, "p", "sb_" + workspace, "cl_" + workspace,
                                       "f", "", now(), std::nullopt, ""});
    }
    void end(const std::string& workspace) { journal.ended(workspace, now(), "deleted"); }
    void recorded(const std::string& workspace, const std::string& execution) {
        journal.record(ExecutionRecord{execution, workspace, "t", "f", "{}", "", now()}, {});
        journal.flush(5s);
    }
    /// Keeps a copy. Returns false if there was no room.
    bool keep(const ArtifactStore::Name& which, std::size_t bytes = 10) {
        const auto copy = store().begin(which, bytes);
        if (!copy) return false;
        REQUIRE(copy->add(std::string(bytes, 'x')));
        copy->finish();
        return true;
    }
    std::int64_t now() const { return toUnixMillis(clock.wall()); }
    std::size_t files() const {
        std::size_t count = 0;
        for (const auto& at : std::filesystem::recursive_directory_iterator(dir.file("artifacts")))
            count += at.is_regular_file() ? 1 : 0;
        return count;
    }

    TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    Journal journal{dir.file("hearth.db"), clock, log};
    WorkspaceTable table;
    ArtifactStore::Limits limits;
    std::unique_ptr<ArtifactStore> made;
};

const ArtifactStore::Name kFirst{"t", "ws_1", "ex_1-0"};

}  // namespace

TEST_CASE("a copy is seen whole or not at all, and its room is given back", "[unit][controller]") {
    Shelf shelf;
    shelf.live("t", "ws_1");
    {
        const auto copy = shelf.store().begin(kFirst, 10);
        REQUIRE(copy);
        REQUIRE(copy->add("12345"));
        CHECK_FALSE(shelf.store().has(kFirst));
        CHECK(shelf.store().kept() == kBlock);
    }
    CHECK(shelf.files() == 0);
    CHECK(shelf.store().kept() == 0);
    CHECK(codeOf([&] { shelf.store().open(kFirst); }) == ErrorCode::Gone);

    REQUIRE(shelf.keep(kFirst, 5000));
    CHECK(shelf.store().open(kFirst).size == 5000);
    CHECK(shelf.store().kept() == 2 * kBlock);
    REQUIRE(shelf.keep(kFirst, 10));  // written once more, after a crash
    CHECK(shelf.store().open(kFirst).size == 10);
    CHECK(shelf.store().kept() == kBlock);
}

TEST_CASE("copies are kept for an hour after their workspace's end", "[unit][controller]") {
    Shelf shelf;
    shelf.live("t", "ws_1");
    REQUIRE(shelf.keep(kFirst));
    shelf.recorded("ws_1", "ex_1");
    shelf.clock.advance(48h);
    shelf.store().prune();
    CHECK(shelf.store().has(kFirst));  // its row is open: it is open or its end is being written

    shelf.end("ws_1");
    shelf.clock.advance(59min);
    shelf.store().prune();
    CHECK(shelf.store().has(kFirst));
    shelf.restart();
    CHECK(shelf.store().has(kFirst));
    CHECK(shelf.store().kept() == kBlock);
    shelf.clock.advance(2min);
    shelf.store().prune();
    CHECK_FALSE(shelf.store().has(kFirst));
    CHECK(shelf.store().kept() == 0);
}

TEST_CASE("copies of a workspace without a record go an hour after their last change",
          "[unit][controller]") {
    Shelf shelf;
    REQUIRE(shelf.keep(kFirst));
    shelf.restart();
    const std::string owner =
        std::filesystem::directory_iterator(shelf.dir.file("artifacts"))->path().string();
    const std::string folder = owner + "/ws_1";
    const auto touched = [&](std::int64_t unix_ms) {
        const timespec at{unix_ms / 1000, 0};
        const timespec times[2] = {at, at};
        REQUIRE(::utimensat(AT_FDCWD, folder.c_str(), times, 0) == 0);
    };
    touched(shelf.now() - 59 * 60'000);
    shelf.store().prune();
    CHECK(shelf.store().has(kFirst));
    touched(shelf.now() - 61 * 60'000);
    shelf.store().prune();
    CHECK_FALSE(shelf.store().has(kFirst));
}

TEST_CASE("copies without a possible link are removed at the start", "[unit][controller]") {
    Shelf shelf;
    shelf.live("t", "ws_1");
    REQUIRE(shelf.keep(kFirst));
    REQUIRE(shelf.keep({"t", "ws_1", "ex_2-0"}));  // the server died before it wrote the record
    REQUIRE(shelf.keep({"t", "ws_2", "ex_3-0"}));  // the data file was lost with its workspace
    shelf.recorded("ws_1", "ex_1");
    const std::string artifacts = shelf.dir.file("artifacts");
    const std::string place =
        std::filesystem::directory_iterator(artifacts)->path().string() + "/ws_1/";
    std::ofstream(place + "ex_1-1.part") << "half";
    std::filesystem::create_directory(artifacts + "/lost+found");
    std::ofstream(artifacts + "/stray") << "nobody's";

    shelf.restart();
    CHECK(shelf.store().has(kFirst));
    CHECK_FALSE(shelf.store().has({"t", "ws_1", "ex_2-0"}));
    CHECK(shelf.store().has({"t", "ws_2", "ex_3-0"}));
    CHECK_FALSE(std::filesystem::exists(place + "ex_1-1.part"));
    CHECK(shelf.store().kept() == 2 * kBlock);
}

TEST_CASE("a workspace at its limit of copies gets no more, and loses none", "[unit][controller]") {
    Shelf shelf({.workspace = 2 * kBlock, .tenant = 8 * kBlock, .all = 16 * kBlock});
    shelf.live("t", "ws_1");
    REQUIRE(shelf.keep(kFirst));
    REQUIRE(shelf.keep({"t", "ws_1", "ex_1-1"}));
    CHECK_FALSE(shelf.keep({"t", "ws_1", "ex_1-2"}));
    CHECK_FALSE(shelf.keep({"t", "ws_2", "ex_2-0"}, 3 * kBlock));
    CHECK_FALSE(shelf.keep({"t", "ws_2", "ex_2-0"}, SIZE_MAX));
    CHECK(shelf.files() == 2);
}

TEST_CASE("a tenant's new copies replace its own, from the workspace that ended longest ago",
          "[unit][controller]") {
    Shelf shelf({.workspace = 2 * kBlock, .tenant = 3 * kBlock, .all = 16 * kBlock});
    shelf.live("other", "ws_0");
    REQUIRE(shelf.keep({"other", "ws_0", "ex_0-0"}));
    shelf.end("ws_0");  // ended first, but another tenant's
    for (const char* workspace : {"ws_1", "ws_2", "ws_3", "ws_4"}) shelf.live("t", workspace);
    for (const char* workspace : {"ws_1", "ws_2", "ws_3"}) {
        REQUIRE(shelf.keep({"t", workspace, "ex_1-0"}));
    }
    shelf.clock.advance(1min);
    shelf.end("ws_2");
    shelf.clock.advance(1min);
    shelf.end("ws_1");

    CHECK(shelf.keep({"t", "ws_4", "ex_4-0"}));
    CHECK_FALSE(shelf.store().has({"t", "ws_2", "ex_1-0"}));
    CHECK(shelf.store().has({"t", "ws_1", "ex_1-0"}));
    CHECK(shelf.keep({"t", "ws_4", "ex_4-1"}));
    CHECK_FALSE(shelf.store().has({"t", "ws_1", "ex_1-0"}));
    CHECK_FALSE(shelf.keep({"t", "ws_3", "ex_3-1"}));  // the rest belongs to open workspaces
    CHECK(shelf.store().has({"t", "ws_3", "ex_1-0"}));
    CHECK(shelf.store().has({"other", "ws_0", "ex_0-0"}));
}

TEST_CASE("a full store evicts copies of the tenant that keeps most", "[unit][controller]") {
    Shelf shelf({.workspace = 4 * kBlock, .tenant = 4 * kBlock, .all = 6 * kBlock});
    shelf.live("much", "ws_1");
    shelf.live("little", "ws_2");
    shelf.live("new", "ws_3");
    REQUIRE(shelf.keep({"little", "ws_2", "ex_2-0"}));
    shelf.end("ws_2");
    shelf.clock.advance(1min);
    REQUIRE(shelf.keep({"much", "ws_1", "ex_1-0"}, 4 * kBlock));
    shelf.end("ws_1");
    REQUIRE(shelf.keep({"new", "ws_3", "ex_3-0"}));

    CHECK(shelf.keep({"new", "ws_3", "ex_3-1"}));
    CHECK_FALSE(shelf.store().has({"much", "ws_1", "ex_1-0"}));
    CHECK(shelf.store().has({"little", "ws_2", "ex_2-0"}));
    CHECK(shelf.keep({"new", "ws_3", "ex_3-2"}, 2 * kBlock));
    shelf.live("much", "ws_4");
    CHECK(shelf.keep({"much", "ws_4", "ex_4-0"}));
    // Full again. A tenant loses no copy to another tenant that keeps as much.
    CHECK_FALSE(shelf.keep({"much", "ws_4", "ex_4-1"}));
    CHECK(shelf.store().has({"little", "ws_2", "ex_2-0"}));
}

TEST_CASE("a copy that cannot be written leaves no room taken", "[unit][controller]") {
    Shelf shelf;
    shelf.live("t", "ws_1");
    REQUIRE(shelf.keep(kFirst));
    CHECK_THROWS_AS(shelf.store().begin({"t", "ws_1", "no/such"}, 10), std::system_error);
    CHECK(shelf.store().kept() == kBlock);
}

TEST_CASE("copies go in slices, and the journal is asked once about each workspace",
          "[unit][controller]") {
    constexpr int kMany = 200;
    Shelf shelf;
    for (int i = 0; i < kMany; ++i) {
        const std::string id = "ws_" + std::to_string(i);
        shelf.live("t", id);
        REQUIRE(shelf.keep({"t", id, "ex_" + std::to_string(i) + "-0"}));
        shelf.end(id);
    }
    const auto pruneAll = [&] {
        std::size_t most = 0;
        for (int calls = 0; calls < 1000; ++calls) {
            const std::size_t before = shelf.files();
            const ReconcileResult result = shelf.store().prune();
            most = std::max(most, before - shelf.files());
            REQUIRE(result.again);
            if (*result.again >= 1s) break;
        }
        return most;
    };
    CHECK(pruneAll() == 0);
    CHECK(shelf.store().asked() == kMany);
    pruneAll();
    CHECK(shelf.store().asked() == kMany);  // the ends are known by now
    shelf.clock.advance(61min);
    const std::size_t most = pruneAll();
    CHECK(most > 0);
    CHECK(most <= 64);
    CHECK(shelf.files() == 0);
    CHECK(shelf.store().kept() == 0);
    CHECK(shelf.store().asked() == kMany);
}
