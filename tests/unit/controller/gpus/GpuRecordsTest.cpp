#include "controller/gpus/GpuRecords.h"
#include "tests/support/FakeGpuHost.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

/// One start of a server on the data file of a desk.
struct GpuStart {
    GpuStart(Desk& desk, const std::string& before, const std::string& now)
        : journal(desk.path, desk.clock, desk.log),
          records(journal, desk.log, {before, now}),
          found(records.load()) {}

    Journal journal;
    GpuRecords records;
    const GpuRecords::Contents found;
};

}  // namespace

TEST_CASE("a record of a clean GPU counts only for the start after the one that wrote it",
          "[unit][gpu]") {
    Desk desk;
    const auto clean = [&](const std::string& before, const std::string& now) {
        const GpuStart start(desk, before, now);
        REQUIRE(start.found.devices.size() == 1);
        CHECK(start.found.devices.front().uuid == FakeGpuHost::uuid(1));
        return start.found.devices.front().clean;
    };
    {
        GpuStart start(desk, "", "first");
        CHECK(start.found.devices.empty());
        start.records.storeClean(FakeGpuHost::uuid(1));
    }
    CHECK(clean("first", "second"));
    CHECK(clean("second", "third"));  // nobody has used it since
    CHECK_FALSE(clean("another server's", "fourth"));
    CHECK_FALSE(clean("third", "fifth"));
    CHECK_FALSE(clean("fifth", "sixth"));
    CHECK_FALSE(clean("", "seventh"));
}

TEST_CASE("a GPU without trust is unclean at the next start", "[unit][gpu]") {
    Desk desk;
    {
        GpuStart start(desk, "", "first");
        start.records.storeClean(FakeGpuHost::uuid(1));
        start.records.distrust(FakeGpuHost::uuid(1));
    }
    CHECK(GpuStart(desk, "first", "second").found.devices.empty());
}

TEST_CASE("a record of a condemned GPU outlives each restart until it is cleared", "[unit][gpu]") {
    Desk desk;
    {
        GpuStart start(desk, "", "first");
        start.records.storeClean(FakeGpuHost::uuid(1));
        start.records.storeCondemned(FakeGpuHost::uuid(1), "it hangs");
        start.records.distrust(FakeGpuHost::uuid(1));
    }
    for (const char* before : {"first", "another server's"}) {
        const GpuStart start(desk, before, "second");
        REQUIRE(start.found.devices.size() == 1);
        CHECK(start.found.devices.front().condemned == "it hangs");
        CHECK_FALSE(start.found.devices.front().clean);
    }
    GpuStart(desk, "second", "third").records.clearCondemned(FakeGpuHost::uuid(1));
    const GpuStart start(desk, "third", "fourth");
    REQUIRE(start.found.devices.size() == 1);
    CHECK(start.found.devices.front().condemned.empty());
    CHECK_FALSE(start.found.devices.front().clean);
}

TEST_CASE("a record of a lease comes back whole, and its GPU is not clean", "[unit][gpu]") {
    Desk desk;
    const bool shared = GENERATE(false, true);
    const std::string instance = FakeGpuHost::uuid(2, "MIG-");
    {
        GpuStart start(desk, "", "first");
        start.records.storeClean(instance);
        start.records.store({{instance, "sb_a", "p", shared, FakeGpuHost::uuid(1)}});
    }
    {
        GpuStart start(desk, "first", "second");
        REQUIRE(start.found.leases.size() == 1);
        const GpuRecords::Lease& lease = start.found.leases.front();
        CHECK(lease.uuid == instance);
        CHECK(lease.sandbox == "sb_a");
        CHECK(lease.pool == "p");
        CHECK(lease.shared == shared);
        CHECK(lease.parent == FakeGpuHost::uuid(1));
        REQUIRE(start.found.devices.size() == 1);
        CHECK_FALSE(start.found.devices.front().clean);
        start.records.erase("sb_b");
        start.records.erase("sb_a");
    }
    const GpuStart start(desk, "second", "third");
    CHECK(start.found.leases.empty());
    CHECK_FALSE(start.found.devices.front().clean);
}

TEST_CASE("leases that the disk did not delete are deleted when it accepts that", "[unit][gpu]") {
    Desk desk;
    GpuStart start(desk, "", "first");
    const auto left = [&] { return GpuRecords(start.journal, desk.log, {}).load().leases.size(); };
    start.records.store({{FakeGpuHost::uuid(1), "sb_a", "p", false, ""},
                         {FakeGpuHost::uuid(2), "sb_a", "p", false, ""},
                         {FakeGpuHost::uuid(3), "sb_b", "p", false, ""}});
    start.journal.writeNow([](Database& database) {
        database.execute(
            "CREATE TRIGGER refuses BEFORE DELETE ON gpu_leases "
            "BEGIN SELECT RAISE(ABORT, 'refused'); END");
    });
    start.records.erase("sb_a");
    start.records.retryErasures();
    CHECK(left() == 3);
    start.journal.writeNow([](Database& database) { database.execute("DROP TRIGGER refuses"); });
    start.records.retryErasures();
    CHECK(left() == 1);
}
