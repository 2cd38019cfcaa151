#include "controller/journal/DatabaseFile.h"
#include "controller/journal/Journal.h"
#include "tests/support/FlakyReads.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

struct DataFile : Desk {
    metrics::Metrics metrics;

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
    DataFile data;
    CHECK(data.file(false).begunAnew());
    data.journal().setMeta("a", "b");
    CHECK_FALSE(data.file().begunAnew());
    CHECK(data.journal().meta("a") == "b");
    CHECK(data.kept().empty());
    for (const char* found : {"start", "running", "missing"}) CHECK(data.counted(found, 0));
}

TEST_CASE("a damaged database is kept with its WAL, counted, and begun anew",
          "[unit][controller]") {
    DataFile data;
    data.journal().setMeta("a", "b");
    data.overwrite(0, 4096);
    const std::string damaged = readText(data.path);
    writeText(data.path + "-wal", "what was not in it yet");
    CHECK(data.file().begunAnew());
    CHECK(data.counted("start", 1));
    REQUIRE(data.kept().size() == 1);
    CHECK(readText(data.dir.file(data.kept()[0])) == damaged);
    CHECK(readText(data.dir.file(data.kept()[0] + "-wal")) == "what was not in it yet");
    CHECK(data.journal().meta("a").empty());
    CHECK_FALSE(data.file().begunAnew());
}

TEST_CASE("a read that fails once is not damage", "[unit][controller]") {
    DataFile data;
    {
        Journal journal = data.journal();
        journal.setMeta("a", "b");
    }
    // This holds for each read of the check.
    for (int before = 0;; ++before) {
        FlakyReads disk;
        disk.after = before;
        disk.failing = 1;
        CHECK_FALSE(data.file().begunAnew());
        if (disk.failed == 0) break;
        REQUIRE(before < 1'000);
    }
    CHECK(data.kept().empty());
    CHECK(data.journal().meta("a") == "b");
}

TEST_CASE("damage in tables that a start reads is found before anything is served",
          "[unit][controller]") {
    for (const char* table : {"tokens", "pools", "meta", "workspaces", "contexts", "events"}) {
        INFO(table);
        DataFile data;
        data.journal().setMeta("a", "b");
        data.damageTable(table);
        CHECK(data.file().begunAnew());
        CHECK(data.kept().size() == 1);
    }
}

TEST_CASE("damage found by an access is reported, and set aside at the next start",
          "[unit][controller]") {
    DataFile data;
    data.journal().setMeta("a", "b");
    data.damageTable("executions");
    {
        DatabaseFile file = data.file();
        CHECK_FALSE(file.begunAnew());
        Journal journal(data.path, data.clock, data.log, {.file = &file});
        CHECK_THROWS_AS(journal.execution("ex_1"), DamagedDatabase);
        CHECK_THROWS_AS(journal.execution("ex_1"), DamagedDatabase);
        CHECK(data.counted("running", 2));
        CHECK(journal.meta("a") == "b");  // readable parts still serve
        CHECK(std::filesystem::exists(DatabaseFile::suspectPath(data.path)));
        CHECK(data.kept().empty());  // nothing is moved under an open database
    }
    CHECK(data.file().begunAnew());
    CHECK(data.kept().size() == 1);
    CHECK_FALSE(std::filesystem::exists(DatabaseFile::suspectPath(data.path)));
}

TEST_CASE("a suspicion that a check does not confirm is dropped", "[unit][controller]") {
    DataFile data;
    data.journal().setMeta("a", "b");
    writeText(DatabaseFile::suspectPath(data.path), "");
    CHECK_FALSE(data.file().begunAnew());
    CHECK_FALSE(std::filesystem::exists(DatabaseFile::suspectPath(data.path)));
    CHECK(data.kept().empty());
}

TEST_CASE("the last three damaged databases are kept", "[unit][controller]") {
    DataFile data;
    std::vector<std::string> contents;
    for (char mark = 'a'; mark < 'f'; ++mark) {
        contents.emplace_back(5000, mark);
        writeText(data.path, contents.back());
        writeText(data.path + "-wal", contents.back());
        data.file();
    }
    const std::vector<std::string> kept = data.kept();
    REQUIRE(kept.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(readText(data.dir.file(kept[i])) == contents[i + 2]);
        CHECK(readText(data.dir.file(kept[i] + "-wal")) == contents[i + 2]);
    }
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data.dir.path())) {
        files += entry.path().filename().string().find(".damaged-") != std::string::npos ? 1 : 0;
    }
    CHECK(files == 6);
}

TEST_CASE("a missing or empty database is reported if there was one before", "[unit][controller]") {
    DataFile data;
    CHECK(data.file().begunAnew());
    CHECK(data.counted("missing", 1));
    writeText(data.path, "");
    CHECK(data.file().begunAnew());
    CHECK(data.counted("missing", 2));
    CHECK(data.kept().empty());
    writeText(data.path + "-wal", "left over");
    std::filesystem::remove(data.path);
    data.file();
    CHECK(data.kept().size() == 1);
    CHECK_FALSE(std::filesystem::exists(data.path + "-wal"));
}

TEST_CASE("a database of another schema is whole, refused with what to do, and not changed",
          "[unit][controller]") {
    DataFile data;
    data.journal().setMeta("a", "b");
    const int schema = GENERATE(0, 7);
    {
        Database database(data.path);
        database.execute("DROP TABLE contexts");
        database.execute(("PRAGMA user_version = " + std::to_string(schema)).c_str());
    }
    const std::string before = readText(data.path);
    CHECK_FALSE(data.file().begunAnew());
    CHECK_THROWS_WITH(data.journal(),
                      "the data file " + data.path + " has schema " + std::to_string(schema) +
                          ", and this Hearth reads only schema 1: move it and " + data.path +
                          ".spare away to begin a new one, or start with another "
                          "--data-dir");
    CHECK(readText(data.path) == before);
    CHECK(data.kept().empty());
}

TEST_CASE("a check of a database keeps the WAL that a crash left", "[unit][controller]") {
    DataFile data;
    {
        const Journal open(data.path, data.clock, data.log);
        data.journal().setMeta("a", "b");
        for (const char* suffix : {"", "-wal"}) {
            std::filesystem::copy_file(data.path + suffix, data.dir.file("left.db") + suffix);
        }
    }
    const std::string wal = readText(data.dir.file("left.db-wal"));
    REQUIRE_FALSE(wal.empty());
    CHECK_FALSE(DatabaseFile::fault(data.dir.file("left.db"), true));
    CHECK(readText(data.dir.file("left.db-wal")) == wal);
    CHECK(Journal(data.dir.file("left.db"), data.clock, data.log).meta("a") == "b");
}

TEST_CASE("a database that cannot be opened is not set aside", "[unit][controller]") {
    DataFile data;
    std::filesystem::create_symlink(data.path, data.path);
    CHECK_FALSE(data.file().begunAnew());
    CHECK(data.kept().empty());
    CHECK_THROWS_AS(data.journal(), std::runtime_error);
}

TEST_CASE("a folder in the place of the database is set aside", "[unit][controller]") {
    DataFile data;
    std::filesystem::create_directory(data.path);
    CHECK(data.file().begunAnew());
    CHECK(data.kept().size() == 1);
    CHECK_NOTHROW(data.journal());
}

TEST_CASE("damage in tables that a start does not read ends no start, and the next one finds it",
          "[unit][controller]") {
    DataFile data;
    {
        Journal journal = data.journal();
        journal.record(ExecutionRecord{"ex_1", "ws_1", "t", "f", "{}", "", 1}, {});
        journal.flush(std::chrono::seconds(30));
        journal.checkpoint();
    }
    data.damageTable("executions");
    {
        DatabaseFile file = data.file();
        CHECK_FALSE(file.begunAnew());
        JournalLimits limits;
        limits.file = &file;
        Journal journal(data.path, data.clock, data.log, limits);
        CHECK(journal.meta("a").empty());
        CHECK_THROWS_AS(journal.execution("ex_1"), DamagedDatabase);
        CHECK(data.counted("running", 1));
    }
    CHECK(data.file().begunAnew());
}

TEST_CASE("an empty spare database exists for a start on a full disk", "[unit][controller]") {
    DataFile data;
    const std::string spare = data.path + ".spare";
    {
        DatabaseFile file = data.file(false);
        CHECK_FALSE(std::filesystem::exists(spare));
        JournalLimits limits;
        limits.file = &file;
        Journal journal(data.path, data.clock, data.log, limits);
        journal.setMeta("a", "b");
        CHECK(std::filesystem::exists(spare));
    }
    CHECK_FALSE(data.file().begunAnew());
    CHECK(std::filesystem::exists(spare));
    data.overwrite(0, 4096);
    CHECK(data.file().begunAnew());
    CHECK_FALSE(std::filesystem::exists(spare));
    CHECK(std::filesystem::exists(data.path));
    CHECK(data.journal().meta("a").empty());
    for (const auto& entry : std::filesystem::directory_iterator(data.dir.path())) {
        CHECK(entry.path().string().find("begun") == std::string::npos);
    }
}
