#include "controller/journal/DatabaseFile.h"
#include "controller/journal/Journal.h"
#include "tests/support/FlakyReads.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

struct Desk {
    TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    metrics::Metrics metrics;
    const std::string path = dir.file("hearth.db");

    DatabaseFile file(bool expected = true) { return {path, expected, log, metrics}; }
    Journal journal() { return {path, clock, log}; }
    bool counted(const std::string& found, int times) {
        return metrics.render().find("hearth_database_damage_total{found=\"" + found + "\"} " +
                                     std::to_string(times) + "\n") != std::string::npos;
    }
    std::vector<std::string> kept() const { return DatabaseFile::setAsideFiles(path); }

    void overwrite(std::uint64_t offset, std::size_t size) const {
        std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(static_cast<std::streamoff>(offset));
        out << std::string(size, 'x');
    }
    /// Makes the page where a table begins unreadable, as a bad disk would.
    void damageTable(const std::string& table) {
        std::uint64_t page = 0;
        std::uint64_t size = 0;
        {
            Database database(path);
            Statement root(database, "SELECT rootpage FROM sqlite_schema WHERE name = ?");
            REQUIRE(root.bind(table).step());
            page = static_cast<std::uint64_t>(root.integer(0));
            Statement pages(database, "PRAGMA page_size");
            REQUIRE(pages.step());
            size = static_cast<std::uint64_t>(pages.integer(0));
        }
        overwrite((page - 1) * size, size);
    }
};

}  // namespace

TEST_CASE("a whole database and a first one are left alone", "[unit][controller]") {
    Desk desk;
    CHECK(desk.file(false).begunAnew());
    desk.journal().setMeta("a", "b");
    CHECK_FALSE(desk.file().begunAnew());
    CHECK(desk.journal().meta("a") == "b");
    CHECK(desk.kept().empty());
    for (const char* found : {"start", "running", "missing"}) CHECK(desk.counted(found, 0));
}

TEST_CASE("a damaged database is kept with its WAL, counted, and begun anew",
          "[unit][controller]") {
    Desk desk;
    desk.journal().setMeta("a", "b");
    desk.overwrite(0, 4096);
    const std::string damaged = readText(desk.path);
    writeText(desk.path + "-wal", "what was not in it yet");
    CHECK(desk.file().begunAnew());
    CHECK(desk.counted("start", 1));
    REQUIRE(desk.kept().size() == 1);
    CHECK(readText(desk.dir.file(desk.kept()[0])) == damaged);
    CHECK(readText(desk.dir.file(desk.kept()[0] + "-wal")) == "what was not in it yet");
    CHECK(desk.journal().meta("a").empty());
    CHECK_FALSE(desk.file().begunAnew());
}

TEST_CASE("a read that fails once is not damage", "[unit][controller]") {
    Desk desk;
    {
        Journal journal = desk.journal();
        journal.setMeta("a", "b");
    }
    // Whichever of the reads of the check it is.
    for (int before = 0;; ++before) {
        FlakyReads disk;
        disk.after = before;
        disk.failing = 1;
        CHECK_FALSE(desk.file().begunAnew());
        if (disk.failed == 0) break;
        REQUIRE(before < 1'000);
    }
    CHECK(desk.kept().empty());
    CHECK(desk.journal().meta("a") == "b");
}

TEST_CASE("damage of what a start reads is found before anything is served", "[unit][controller]") {
    for (const char* table : {"tokens", "pools", "meta", "workspaces", "contexts", "events"}) {
        INFO(table);
        Desk desk;
        desk.journal().setMeta("a", "b");
        desk.damageTable(table);
        CHECK(desk.file().begunAnew());
        CHECK(desk.kept().size() == 1);
    }
}

TEST_CASE("damage that an access finds is told, and set aside at the next start",
          "[unit][controller]") {
    Desk desk;
    desk.journal().setMeta("a", "b");
    desk.damageTable("executions");
    {
        DatabaseFile file = desk.file();
        CHECK_FALSE(file.begunAnew());
        Journal journal(desk.path, desk.clock, desk.log, {.file = &file});
        CHECK_THROWS_AS(journal.execution("ex_1"), DamagedDatabase);
        CHECK_THROWS_AS(journal.execution("ex_1"), DamagedDatabase);
        CHECK(desk.counted("running", 2));
        CHECK(journal.meta("a") == "b");  // what can be read serves on
        CHECK(std::filesystem::exists(DatabaseFile::suspectPath(desk.path)));
        CHECK(desk.kept().empty());  // nothing is moved under an open database
    }
    CHECK(desk.file().begunAnew());
    CHECK(desk.kept().size() == 1);
    CHECK_FALSE(std::filesystem::exists(DatabaseFile::suspectPath(desk.path)));
}

TEST_CASE("a suspicion that a look does not confirm is dropped", "[unit][controller]") {
    Desk desk;
    desk.journal().setMeta("a", "b");
    writeText(DatabaseFile::suspectPath(desk.path), "");
    CHECK_FALSE(desk.file().begunAnew());
    CHECK_FALSE(std::filesystem::exists(DatabaseFile::suspectPath(desk.path)));
    CHECK(desk.kept().empty());
}

TEST_CASE("the last three damaged databases are kept", "[unit][controller]") {
    Desk desk;
    std::vector<std::string> contents;
    for (char mark = 'a'; mark < 'f'; ++mark) {
        contents.emplace_back(5000, mark);
        writeText(desk.path, contents.back());
        writeText(desk.path + "-wal", contents.back());
        desk.file();
    }
    const std::vector<std::string> kept = desk.kept();
    REQUIRE(kept.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(readText(desk.dir.file(kept[i])) == contents[i + 2]);
        CHECK(readText(desk.dir.file(kept[i] + "-wal")) == contents[i + 2]);
    }
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(desk.dir.path())) {
        files += entry.path().filename().string().find(".damaged-") != std::string::npos ? 1 : 0;
    }
    CHECK(files == 6);
}

TEST_CASE("a database that is missing or empty where one was is told", "[unit][controller]") {
    Desk desk;
    CHECK(desk.file().begunAnew());
    CHECK(desk.counted("missing", 1));
    writeText(desk.path, "");
    CHECK(desk.file().begunAnew());
    CHECK(desk.counted("missing", 2));
    CHECK(desk.kept().empty());
    writeText(desk.path + "-wal", "left over");
    std::filesystem::remove(desk.path);
    desk.file();
    CHECK(desk.kept().size() == 1);
    CHECK_FALSE(std::filesystem::exists(desk.path + "-wal"));
}

TEST_CASE("a database of an earlier version is whole", "[unit][controller]") {
    Desk desk;
    desk.journal().setMeta("a", "b");
    { Database(desk.path).execute("DROP TABLE contexts"); }
    CHECK_FALSE(desk.file().begunAnew());
    CHECK(desk.journal().meta("a") == "b");
}

TEST_CASE("what a crash left in the WAL is kept by a look at it", "[unit][controller]") {
    Desk desk;
    {
        const Journal open(desk.path, desk.clock, desk.log);
        desk.journal().setMeta("a", "b");
        for (const char* suffix : {"", "-wal"}) {
            std::filesystem::copy_file(desk.path + suffix, desk.dir.file("left.db") + suffix);
        }
    }
    const std::string wal = readText(desk.dir.file("left.db-wal"));
    REQUIRE_FALSE(wal.empty());
    CHECK_FALSE(DatabaseFile::fault(desk.dir.file("left.db"), true));
    CHECK(readText(desk.dir.file("left.db-wal")) == wal);
    CHECK(Journal(desk.dir.file("left.db"), desk.clock, desk.log).meta("a") == "b");
}

TEST_CASE("what cannot be opened is not set aside", "[unit][controller]") {
    Desk desk;
    std::filesystem::create_symlink(desk.path, desk.path);
    CHECK_FALSE(desk.file().begunAnew());
    CHECK(desk.kept().empty());
    CHECK_THROWS_AS(desk.journal(), std::runtime_error);
}

TEST_CASE("a folder in the place of the database is set aside", "[unit][controller]") {
    Desk desk;
    std::filesystem::create_directory(desk.path);
    CHECK(desk.file().begunAnew());
    CHECK(desk.kept().size() == 1);
    CHECK_NOTHROW(desk.journal());
}

TEST_CASE("damage to what a start does not read ends no start, and is found by the next",
          "[unit][controller]") {
    Desk desk;
    {
        Journal journal = desk.journal();
        journal.record(ExecutionRecord{"ex_1", "ws_1", "t", "f", "{}", "", 1}, {});
        journal.flush(std::chrono::seconds(30));
        journal.writeNow(
            [](Database& database) { database.execute("DROP INDEX executions_listed"); });
        journal.checkpoint();
    }
    desk.damageTable("executions");
    {
        DatabaseFile file = desk.file();
        CHECK_FALSE(file.begunAnew());
        JournalLimits limits;
        limits.file = &file;
        Journal journal(desk.path, desk.clock, desk.log, limits);
        CHECK(journal.meta("a").empty());
        CHECK(desk.counted("running", 1));
    }
    CHECK(desk.file().begunAnew());
}

TEST_CASE("an empty database lies ready for the day when the disk has no room for one",
          "[unit][controller]") {
    Desk desk;
    const std::string spare = desk.path + ".spare";
    {
        DatabaseFile file = desk.file(false);
        CHECK_FALSE(std::filesystem::exists(spare));
        JournalLimits limits;
        limits.file = &file;
        Journal journal(desk.path, desk.clock, desk.log, limits);
        journal.setMeta("a", "b");
        CHECK(std::filesystem::exists(spare));
    }
    CHECK_FALSE(desk.file().begunAnew());
    CHECK(std::filesystem::exists(spare));
    desk.overwrite(0, 4096);
    CHECK(desk.file().begunAnew());
    CHECK_FALSE(std::filesystem::exists(spare));
    CHECK(std::filesystem::exists(desk.path));
    CHECK(desk.journal().meta("a").empty());
    for (const auto& entry : std::filesystem::directory_iterator(desk.dir.path())) {
        CHECK(entry.path().string().find("begun") == std::string::npos);
    }
}
