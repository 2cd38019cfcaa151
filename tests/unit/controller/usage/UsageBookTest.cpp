#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/controller/Principals.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

struct Metered : Filled {
    UsageSums used(const Principal& who, const std::string& tenant = "default") {
        UsageQuery query;
        query.since = clock.wall() - 48h;
        for (const UsageRow& row : house.usage_reports.report(who, query)) {
            if (row.tenant == tenant) return row.sums;
        }
        return {};
    }
};

}  // namespace

TEST_CASE("a workspace's time, processors and memory are counted once", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    filled.runtime.setCpu(250ms);
    filled.manual.advance(10s);
    house.usage.look();
    UsageSums sums = filled.used(house.who);
    CHECK(sums.claims == 1);
    CHECK(sums.sandbox_ms == 10'000);
    CHECK(sums.cpu_us == 250'000);
    filled.runtime.setCpu(400ms);
    filled.manual.advance(5s);
    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    sums = filled.used(house.who);
    CHECK(sums.claims == 1);
    CHECK(sums.sandbox_ms == 15'000);
    CHECK(sums.cpu_us == 400'000);
    CHECK(sums.memory_kib_secs > 0);
    house.usage.look();
    CHECK(filled.used(house.who).sandbox_ms == 15'000);
}

TEST_CASE("in a cluster a workspace's use is its agent's report, without its start",
          "[unit][controller]") {
    Ground ground;
    ground.runtime.beCluster();
    ground.runtime.setCpu(100ms);
    House house(ground);
    house.declare("p", pulledSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    const auto used = [&] {
        UsageQuery query;
        query.since = ground.clock.wall() - 1h;
        return house.usage_reports.report(house.who, query).at(0).sums;
    };
    ground.runtime.setCpu(250ms);
    ground.manual.advance(10s);
    house.usage.look();
    CHECK(used().cpu_us == 150'000);
    CHECK(used().memory_kib_secs > 0);
    CHECK(house.workspaces.usage(house.who, view.id).cpu_ms == 250);
    CHECK(house.workspaces.usage(house.who, view.id).memory_bytes > 0);
    ground.runtime.setCpu(400ms);
    ground.manual.advance(5s);
    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    CHECK(used().cpu_us == 300'000);
    CHECK(used().sandbox_ms == 15'000);
}

TEST_CASE("an agent that reports more than its sandbox's limits is counted at the limits",
          "[unit][controller]") {
    Ground ground;
    ground.runtime.beCluster();
    House house(ground);
    house.declare("p", pulledSpec(1));
    REQUIRE(house.filled("p", 1));
    static_cast<void>(house.open(house.who, House::request()));
    const auto used = [&] {
        UsageQuery query;
        query.since = ground.clock.wall() - 1h;
        return house.usage_reports.report(house.who, query).at(0).sums;
    };
    const pool::SandboxLimits limits = pulledSpec().limits;
    REQUIRE(limits.milli_cpu == 1000);
    const std::uint64_t limit_kib = limits.memory_bytes / 1024;
    ground.runtime.setCpu(24h);
    ground.runtime.setMemory(1ULL << 62U);
    ground.manual.advance(10s);
    house.usage.look();
    CHECK(used().cpu_us == 20'000'000);  // with ten seconds of room, once
    CHECK(used().memory_kib_secs == limit_kib * 10);
    ground.manual.advance(5s);
    house.usage.look();
    CHECK(used().cpu_us == 25'000'000);
    CHECK(used().memory_kib_secs == limit_kib * 15);
    // One wrong report does not hide the right ones after it.
    ground.runtime.setCpu(26s);
    ground.manual.advance(5s);
    house.usage.look();
    CHECK(used().cpu_us == 26'000'000);
}

TEST_CASE("a sandbox that ends itself between two looks is counted at its limit since the last one",
          "[unit][controller]") {
    const bool in_cluster = GENERATE(true, false);
    const bool seen = GENERATE(true, false);
    hearth::controller::test::Ground ground;
    if (in_cluster) ground.runtime.beCluster();
    ground.runtime.setCpu(100ms);
    hearth::controller::test::House house(ground);
    house.declare("p", pulledSpec(1));
    REQUIRE(house.filled("p", 1));
    REQUIRE(pulledSpec().limits.milli_cpu == 1000);
    const WorkspaceView view = house.open(house.who, House::request());
    const auto used = [&] {
        UsageQuery query;
        query.since = ground.clock.wall() - 1h;
        return house.usage_reports.report(house.who, query).at(0).sums.cpu_us;
    };
    ground.runtime.setCpu(250ms);
    if (seen) {
        ground.manual.advance(10s);
        house.usage.look();
        REQUIRE(used() == 150'000);
    }
    const WallTime since = ground.clock.wall();
    ground.manual.advance(4s);
    ground.runtime.kill(view.sandbox_id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    const std::uint64_t at_limit = used() - (seen ? 150'000 : 0);
    CHECK(at_limit >= 4'000'000);
    // Its end is noticed later, by no more than the clock has gone on meanwhile.
    CHECK(std::chrono::microseconds(at_limit) <= ground.clock.wall() - since);
    house.usage.look();
    CHECK(used() - (seen ? 150'000 : 0) == at_limit);
}

TEST_CASE("the silence of an agent hides no processor time on this machine", "[unit][controller]") {
    hearth::controller::test::Ground ground;
    ground.runtime.setCpu(100ms);
    hearth::controller::test::House house(ground);
    house.declare("p", pulledSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    house.table.find(view.id)->fallSilent(ground.manual.now());
    ground.manual.advance(10s);
    ground.runtime.setCpu(250ms);
    house.usage.look();
    ground.manual.advance(4s);
    ground.runtime.kill(view.sandbox_id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    UsageQuery query;
    query.since = ground.clock.wall() - 1h;
    CHECK(house.usage_reports.report(house.who, query).at(0).sums.cpu_us >= 4'150'000);
}

TEST_CASE("a sandbox whose agent never reports its use is not counted at its limit",
          "[unit][controller]") {
    hearth::controller::test::Ground ground;
    ground.runtime.beCluster();
    ground.runtime.letAgentsTellNothing();
    ground.runtime.setCpu(100ms);
    hearth::controller::test::House house(ground);
    house.declare("p", pulledSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    ground.manual.advance(4s);
    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    UsageQuery query;
    query.since = ground.clock.wall() - 1h;
    CHECK(house.usage_reports.report(house.who, query).at(0).sums.cpu_us == 0);
}

TEST_CASE("memory that is held only between two looks counts for the time between them",
          "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    constexpr std::uint64_t kKiB = 1024;
    filled.runtime.setMemory(1000 * kKiB);
    filled.manual.advance(10s);
    house.usage.look();
    const auto used = [&] { return filled.used(house.who).memory_kib_secs; };
    REQUIRE(used() == 10'000);
    // It takes 50,000 KiB after the look and gives them back before the next one.
    filled.runtime.setMemoryPeak(view.sandbox_id, 50'000 * kKiB);
    filled.manual.advance(10s);
    house.usage.look();
    CHECK(used() == 10'000 + 500'000);
    // Once it is counted, it is past.
    filled.manual.advance(10s);
    house.usage.look();
    CHECK(used() == 10'000 + 500'000 + 10'000);
    // A peak above the limit is nobody's.
    filled.runtime.setMemoryPeak(view.sandbox_id, 1ULL << 62U);
    filled.manual.advance(1s);
    house.usage.look();
    CHECK(used() == 520'000 + smallSpec(1).limits.memory_bytes / kKiB);
}

TEST_CASE("a workspace that ends before the first look pays for its peak of memory",
          "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    filled.runtime.setMemoryPeak(view.sandbox_id, 50'000 << 10U);
    filled.runtime.setMemory(1000 << 10U);
    filled.manual.advance(4s);
    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    CHECK(filled.used(house.who).memory_kib_secs == 200'000);
}

TEST_CASE("the times of usage checks are unpredictable", "[unit][controller]") {
    std::set<std::int64_t> pauses;
    std::int64_t sum = 0;
    constexpr int kDraws = 2000;
    for (int i = 0; i < kDraws; ++i) {
        const auto pause = UsageMeter::pause();
        REQUIRE(pause >= UsageMeter::kShortestPause);
        REQUIRE(pause <= UsageMeter::kLongestPause);
        pauses.insert(pause.count());
        sum += pause.count();
    }
    CHECK(pauses.size() > 1500);
    CHECK(sum / kDraws > 14'000);
    CHECK(sum / kDraws < 16'000);
}

TEST_CASE("time without work is not saved up for a report of much work", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    static_cast<void>(house.open(house.who, House::request()));
    for (int i = 0; i < 10; ++i) {
        filled.manual.advance(10s);
        house.usage.look();
    }
    filled.runtime.setCpu(1h);
    filled.manual.advance(10s);
    house.usage.look();
    CHECK(filled.used(house.who).cpu_us == 20'000'000);
}

TEST_CASE("sums of use end at the largest number, in memory, on disk and in reports",
          "[unit][controller]") {
    Metered filled;
    UsageBook& book = filled.house.usage.book();
    const UsageSums huge{.cpu_us = UINT64_MAX, .memory_kib_secs = UINT64_MAX / 2};
    constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX);
    for (int hour = 0; hour < 2; ++hour) {
        for (int i = 0; i < 2; ++i) {
            book.add("default", "p", huge);
            book.add("default", "p", huge);
            book.write(filled.clock.wall());
        }
        filled.manual.advance(1h);
    }
    book.add("default", "p", huge);
    const UsageSums sums = filled.used(filled.house.who);
    CHECK(sums.cpu_us == kMost);
    CHECK(sums.memory_kib_secs == kMost);
}

TEST_CASE("a workspace that ends before any look is counted, too", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    filled.manual.advance(2s);
    house.workspaces.close(house.who, view.id);
    CHECK(filled.used(house.who).sandbox_ms == 2'000);
    CHECK(filled.used(house.who).claims == 1);
}

TEST_CASE("after a crash use goes on where it was last written", "[unit][controller]") {
    Ground ground;
    std::string id;
    {
        House before(ground);
        before.declare("p", smallSpec(1));
        REQUIRE(before.filled("p", 1));
        id = before.open(before.who, House::request()).id;
        ground.manual.advance(10s);
        before.usage.look();
        before.journal.flush(5s);
        ground.manual.advance(3s);  // not written
    }
    House after(ground);
    after.recover();
    ground.manual.advance(4s);
    after.usage.look();
    UsageQuery query;
    query.since = ground.clock.wall() - 1h;
    const auto rows = after.usage_reports.report(after.who, query);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].sums.claims == 1);
    CHECK(rows[0].sums.sandbox_ms == 17'000);
}

TEST_CASE("a workspace that was claimed just before a crash is counted by the next server",
          "[unit][controller]") {
    Ground ground;
    {
        House before(ground);
        before.declare("p", smallSpec(1));
        REQUIRE(before.filled("p", 1));
        before.usage.look();
        ground.manual.advance(1s);
        static_cast<void>(before.open(before.who, House::request()));
        before.journal.flush(5s);
        ground.manual.advance(2s);
    }
    House after(ground);
    after.recover();
    after.usage.look();
    UsageQuery query;
    query.since = ground.clock.wall() - 1h;
    const UsageSums sums = after.usage_reports.report(after.who, query).at(0).sums;
    CHECK(sums.claims == 1);
    CHECK(sums.sandbox_ms == 2'000);
}

TEST_CASE("an end that is counted after its sandbox went is counted once", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    filled.manual.advance(3s);
    house.usage.look();
    house.usage.settle(view.sandbox_id);
    filled.manual.advance(1s);
    house.usage.look();
    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return !house.warm.find(view.sandbox_id); }));
    CHECK(filled.used(house.who).claims == 1);
    CHECK(filled.used(house.who).sandbox_ms == 4'000);
}

TEST_CASE("a report moves nothing: after a crash the time before it is still counted",
          "[unit][controller]") {
    Ground ground;
    {
        House before(ground);
        before.declare("p", smallSpec(1));
        REQUIRE(before.filled("p", 1));
        static_cast<void>(before.open(before.who, House::request()));
        before.usage.look();
        ground.manual.advance(10s);
        UsageQuery query;
        query.since = ground.clock.wall() - 1h;
        static_cast<void>(before.usage_reports.report(before.who, query));
        before.journal.flush(5s);
    }
    House after(ground);
    after.recover();
    after.usage.look();
    UsageQuery query;
    query.since = ground.clock.wall() - 1h;
    CHECK(after.usage_reports.report(after.who, query).at(0).sums.sandbox_ms == 10'000);
}

TEST_CASE("users see their own use, operators everyone's, by the fields of the query",
          "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    house.usage.book().add("default", "p", {.claims = 2});
    house.usage.book().add("default", "q", {.claims = 3});
    house.usage.book().add("other", "p", {.claims = 5});
    CHECK(filled.used(house.who).claims == 5);
    CHECK(filled.used(house.who, "other").claims == 5);
    CHECK(filled.used(kOther, "default").claims == 0);
    CHECK(filled.used(kOther, "other").claims == 5);
    UsageQuery by_pool;
    by_pool.by_tenant = false;
    by_pool.by_pool = true;
    by_pool.since = filled.clock.wall() - 1h;
    const auto rows = house.usage_reports.report(house.who, by_pool);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].pool == "p");
    CHECK(rows[0].tenant.empty());
    CHECK(rows[0].sums.claims == 7);
}

TEST_CASE("use is kept by the hour, and a report leaves out other hours", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    house.usage.book().add("default", "p", {.claims = 1});
    house.usage.book().write(filled.clock.wall());
    filled.manual.advance(3h);
    house.usage.book().add("default", "p", {.claims = 10});
    UsageQuery query;
    query.since = filled.clock.wall() - 1h;
    CHECK(house.usage_reports.report(house.who, query).at(0).sums.claims == 10);
    query.since = filled.clock.wall() - 5h;
    CHECK(house.usage_reports.report(house.who, query).at(0).sums.claims == 11);
    query.until = filled.clock.wall() - 2h;
    CHECK(house.usage_reports.report(house.who, query).at(0).sums.claims == 1);
}

TEST_CASE("only tenants with a quota of their own have series", "[unit][controller]") {
    Metered filled;
    House& house = filled.house;
    for (int i = 0; i < 50; ++i) {
        Principal who{"flood-" + std::to_string(i), Role::User, ""};
        const WorkspaceView view = house.open(who, House::request());
        house.workspaces.close(who, view.id);
        REQUIRE(house.filled("p", 1));
    }
    house.usage.look();
    const std::string text = house.metrics.render();
    CHECK(text.find("flood-") == std::string::npos);
    CHECK(text.find("hearth_tenant_claims_total{pool=\"p\",tenant_class=\"other\"} 50") !=
          std::string::npos);
}
