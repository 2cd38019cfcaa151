#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "controller/workspaces/QuotaLedger.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

const Principal kRed{"red", Role::User, ""};
const Principal kAdmin{"default", Role::Admin, ""};

pool::SandboxLimits limits(std::uint32_t milli, std::uint64_t bytes) {
    pool::SandboxLimits out;
    out.milli_cpu = milli;
    out.memory_bytes = bytes;
    return out;
}

Error refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        return e;
    }
    FAIL("it was let through");
    throw std::logic_error("unreachable");
}

WorkspaceRequest inPool() {
    WorkspaceRequest request = House::request();
    request.patience.most = 0ms;
    return request;
}

}  // namespace

TEST_CASE("each limit of a quota is held, named with its use, and free again afterwards",
          "[unit][controller]") {
    const ManualClock clock;
    QuotaLedger ledger(clock);
    ledger.set("red", TenantQuota{.workspaces = 3, .milli_cpu = 2000, .memory_bytes = 1U << 30U});
    QuotaLedger::Counted first = ledger.workspace("red", limits(1000, 512U << 20U));
    const QuotaLedger::Counted second = ledger.workspace("red", limits(500, 256U << 20U));
    Error e = refusal([&] { ledger.workspace("red", limits(600, 1U << 20U)); });
    CHECK(e.code() == ErrorCode::QuotaExceeded);
    CHECK(std::string(e.what()) == "tenant red uses 1500m of its quota of 2 cpu");
    CHECK(e.retryAfter().has_value());
    e = refusal([&] { ledger.workspace("red", limits(100, 512U << 20U)); });
    CHECK(std::string(e.what()) == "tenant red uses 768Mi of its quota of 1Gi memory");
    const QuotaLedger::Counted third = ledger.workspace("red", limits(100, 1U << 20U));
    e = refusal([&] { ledger.workspace("red", limits(100, 1U << 20U)); });
    CHECK(std::string(e.what()) == "tenant red uses 3 of its quota of 3 workspaces");
    CHECK_NOTHROW(ledger.workspace("blue", limits(64'000, 1ULL << 40U)));
    first.reset();
    CHECK(ledger.use("red").workspaces == 2);
    CHECK(ledger.use("red").milli_cpu == 600);
    CHECK_NOTHROW(ledger.workspace("red", limits(1000, 512U << 20U)));
}

TEST_CASE("what is more than the whole quota is refused for good", "[unit][controller]") {
    const ManualClock clock;
    QuotaLedger ledger(clock);
    ledger.set(kEveryone, TenantQuota{.memory_bytes = 1U << 30U});
    const Error e = refusal([&] { ledger.workspace("red", limits(100, 2ULL << 30U)); });
    CHECK(e.code() == ErrorCode::InvalidSpec);
    REQUIRE(e.fields().size() == 1);
    CHECK(e.fields()[0].pointer == "/limits/memoryBytes");
    CHECK(e.fields()[0].reason.find("1Gi") != std::string::npos);
}

TEST_CASE("a quota below what is used is refused with each field, and nothing is changed",
          "[unit][controller]") {
    const ManualClock clock;
    QuotaLedger ledger(clock);
    const auto one = ledger.workspace("red", limits(1000, 512U << 20U));
    const auto two = ledger.workspace("red", limits(1000, 512U << 20U));
    const Error e = refusal([&] {
        ledger.set("red",
                   TenantQuota{.workspaces = 1, .milli_cpu = 4000, .memory_bytes = 1U << 20U});
    });
    CHECK(e.code() == ErrorCode::InvalidSpec);
    REQUIRE(e.fields().size() == 2);
    CHECK(e.fields()[0].pointer == "/workspaces");
    CHECK(e.fields()[0].reason == "is 1, and 2 are in use");
    CHECK(e.fields()[1].pointer == "/memory");
    CHECK_FALSE(ledger.own("red"));
    CHECK_NOTHROW(ledger.set("red", TenantQuota{.workspaces = 2}));
}

TEST_CASE("the rate of claims refills, and who comes too soon is told when", "[unit][controller]") {
    ManualClock clock;
    QuotaLedger ledger(clock);
    ledger.set("red", TenantQuota{.claims_per_second = 0.1, .claims_burst = 2});
    ledger.claim("red");
    ledger.claim("red");
    Error e = refusal([&] { ledger.claim("red"); });
    CHECK(e.code() == ErrorCode::RateLimited);
    CHECK(e.retryAfter() == 10s);
    clock.advance(6s);
    e = refusal([&] { ledger.claim("red"); });
    CHECK(e.retryAfter() == 4s);
    clock.advance(4s);
    CHECK_NOTHROW(ledger.claim("red"));
    CHECK_THROWS(ledger.claim("red"));
    CHECK_NOTHROW(ledger.claim("blue"));
    clock.advance(1h);
    CHECK_NOTHROW(ledger.claim("red"));
    CHECK_NOTHROW(ledger.claim("red"));
    CHECK_THROWS(ledger.claim("red"));
}

TEST_CASE("of a thousand claims that race for ten places ten get one", "[unit][controller]") {
    const ManualClock clock;
    QuotaLedger ledger(clock);
    ledger.set("red", TenantQuota{.workspaces = 10});
    std::atomic<unsigned> had{0};
    Mutex mutex;
    std::vector<QuotaLedger::Counted> all;
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (unsigned claim = 0; claim < 125; ++claim) {
                    try {
                        QuotaLedger::Counted one = ledger.workspace("red", {});
                        ++had;
                        const MutexLock lock(mutex);
                        all.push_back(std::move(one));
                    } catch (const Error&) {
                    }
                }
            });
        }
    }
    CHECK(had == 10);
    CHECK(ledger.use("red").workspaces == 10);
    all.clear();
    CHECK(ledger.use("red").workspaces == 0);
    CHECK(ledger.tenants() == std::vector<std::string>{"red"});
}

TEST_CASE("claims, narrowed claims and executions count, also over a crash", "[unit][controller]") {
    Ground ground;
    PoolSpec spec = smallSpec(4);
    spec.limits = limits(1000, 512U << 20U);
    std::string kept;
    {
        House house(ground);
        house.declare("p", spec);
        REQUIRE(house.filled("p", 4));
        house.quota_service.put(kAdmin, "red", TenantQuota{.workspaces = 2, .executions = 1});
        WorkspaceRequest narrow = House::request();
        narrow.limits.memory_bytes = 64U << 20U;
        kept = house.workspaces.create(kRed, narrow).id;
        const std::string other = house.workspaces.create(kRed, House::request()).id;
        CHECK(house.quotas.use("red").memory_bytes == 576U << 20U);
        CHECK(refusal([&] { house.workspaces.create(kRed, inPool()); }).code() ==
              ErrorCode::QuotaExceeded);
        house.workspaces.close(kRed, other);
        CHECK(house.quotas.use("red").memory_bytes == 64U << 20U);

        ExecutionRequest run;
        run.command = "sleep 3000";
        run.background = true;
        const auto execution = house.executions.start(kRed, kept, run);
        CHECK(house.quotas.use("red").executions == 1);
        const Error e = refusal([&] { house.executions.start(kRed, kept, run); });
        CHECK(e.code() == ErrorCode::QuotaExceeded);
        CHECK(std::string(e.what()).find("executions") != std::string::npos);
        CHECK(house.quotas.use("red").executions == 1);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    CHECK(house.quotas.use("red").workspaces == 1);
    CHECK(house.quotas.use("red").memory_bytes == 64U << 20U);
    CHECK(house.quotas.use("red").executions == 1);
    CHECK(house.quota_service.get(kRed, "red").quota.workspaces == 2U);
    CHECK(house.quota_service.get(kRed, "red").source == QuotaSource::Store);
    house.workspaces.close(kRed, kept);
    CHECK(house.quotas.use("red").workspaces == 0);
    REQUIRE(house.settleUntil([&] { return house.quotas.use("red").executions == 0; }));
}

TEST_CASE("users see their own quota, operators all, and admins change them",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    CHECK(house.quota_service.get(kRed, "red").source == QuotaSource::None);
    CHECK(refusal([&] { house.quota_service.get(kRed, "blue"); }).code() == ErrorCode::NotFound);
    const Principal operates{"default", Role::Operator, ""};
    CHECK(refusal([&] { house.quota_service.put(operates, "red", {}); }).code() ==
          ErrorCode::Forbidden);
    house.quota_service.put(kAdmin, kEveryone, TenantQuota{.workspaces = 5});
    house.quota_service.put(kAdmin, "blue", TenantQuota{.workspaces = 7});
    CHECK(house.quota_service.get(kRed, "red").source == QuotaSource::Everyone);
    CHECK(house.quota_service.get(kRed, "red").quota.workspaces == 5U);
    CHECK(house.quota_service.list(kRed).size() == 1);
    CHECK(house.quota_service.list(operates).size() == 2);
    house.quota_service.remove(kAdmin, "blue");
    CHECK(refusal([&] { house.quota_service.remove(kAdmin, "blue"); }).code() ==
          ErrorCode::NotFound);
    CHECK(house.quota_service.get(operates, "blue").quota.workspaces == 5U);
}
