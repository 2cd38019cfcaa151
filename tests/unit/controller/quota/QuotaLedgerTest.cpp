#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "controller/quota/QuotaDocument.h"
#include "controller/quota/QuotaLedger.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

constexpr QuotaUse kOne{.workspaces = 1, .milli_cpu = 1000, .memory_bytes = 100};

}  // namespace

TEST_CASE("a thousand racing claims at a quota of ten give ten", "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.workspaces = 10});
    std::atomic<int> had{0};
    std::atomic<int> refused{0};
    Mutex mutex;
    std::vector<QuotaLedger::Hold> holds;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 125; ++i) {
                try {
                    QuotaLedger::Hold hold = ledger.reserve("t", kOne);
                    const MutexLock lock(mutex);
                    holds.push_back(std::move(hold));
                    ++had;
                } catch (const Error& e) {
                    if (e.code() == ErrorCode::QuotaExceeded) ++refused;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(had == 10);
    CHECK(refused == 990);
    CHECK(ledger.useOf("t").workspaces == 10);
    holds.pop_back();
    CHECK_NOTHROW([&] { const auto again = ledger.reserve("t", kOne); }());
    holds.clear();
    CHECK(ledger.useOf("t") == QuotaUse());
}

TEST_CASE("the refusal names the quota, its limit and its use", "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.memory_bytes = 250});
    const auto first = ledger.reserve("t", kOne);
    const auto second = ledger.reserve("t", kOne);
    const Error error = errorOf([&] { const auto third = ledger.reserve("t", kOne); });
    CHECK(error.code() == ErrorCode::QuotaExceeded);
    CHECK(std::string(error.what()).find("memory") != std::string::npos);
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].pointer == "/memory");
    CHECK(error.retryAfter());
    // A claim that can never fit gets another refusal, because waiting does not help.
    QuotaUse large = kOne;
    large.memory_bytes = 251;
    CHECK(codeOf([&] { const auto big = ledger.reserve("t", large); }) == ErrorCode::InvalidSpec);
    CHECK(ledger.useOf("t").workspaces == 2);
}

TEST_CASE("GPUs in use and not yet scrubbed are at most twice the quota",
          "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.gpus = 1});
    constexpr QuotaUse kGpu{.workspaces = 1, .gpus = 1};
    std::shared_ptr<void> first = ledger.occupy("t", 1);
    std::shared_ptr<void> second = ledger.occupied("t", 1);
    const Error error = errorOf([&] { const auto hold = ledger.reserve("t", kGpu); });
    CHECK(error.code() == ErrorCode::QuotaExceeded);
    CHECK(std::string(error.what()).find("has 2 GPUs in use or not yet scrubbed") !=
          std::string::npos);
    CHECK(errorOf([&] { ledger.occupy("t", 1); }).code() == ErrorCode::QuotaExceeded);
    CHECK_NOTHROW([&] { const auto none = ledger.reserve("t", kOne); }());
    first.reset();
    CHECK_NOTHROW([&] { const auto hold = ledger.reserve("t", kGpu); }());
    second.reset();
    const auto others = ledger.occupied("unbounded", 100);
    CHECK_NOTHROW([&] { const auto hold = ledger.reserve("unbounded", kGpu); }());
}

TEST_CASE("several workspaces are reserved together or not at all", "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.workspaces = 5});
    const auto three = ledger.reserve("t", kOne, 3);
    CHECK(codeOf([&] { const auto more = ledger.reserve("t", kOne, 3); }) ==
          ErrorCode::QuotaExceeded);
    CHECK(ledger.useOf("t").workspaces == 3);
    CHECK(codeOf([&] { const auto most = ledger.reserve("t", kOne, 6); }) ==
          ErrorCode::InvalidSpec);
}

TEST_CASE("a reservation is corrected to the resources that the workspace really has",
          "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.milli_cpu = 1500});
    auto hold = ledger.reserve("t", {.workspaces = 1, .milli_cpu = 500});
    CHECK(codeOf([&] { hold.resize({.workspaces = 1, .milli_cpu = 2000}); }) ==
          ErrorCode::InvalidSpec);
    CHECK(ledger.useOf("t").milli_cpu == 500);
    hold.resize({.workspaces = 1, .milli_cpu = 1500});
    CHECK(ledger.useOf("t").milli_cpu == 1500);
    hold.correct({.workspaces = 1, .milli_cpu = 4000});  // the values of an existing sandbox
    CHECK(ledger.useOf("t").milli_cpu == 4000);
}

TEST_CASE("a quota below the current use is refused and changes nothing",
          "[unit][controller][quota]") {
    QuotaLedger ledger;
    const auto two = ledger.reserve("t", kOne, 2);
    const Error error = errorOf([&] { ledger.set("t", QuotaSpec{.workspaces = 1}); });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].pointer == "/workspaces");
    CHECK(error.fields()[0].reason == "is 1, but tenant t uses 2");
    CHECK_FALSE(ledger.declared("t"));
    // The default quota applies to a tenant without a quota of its own.
    CHECK(codeOf([&] { ledger.set(kDefaultQuota, QuotaSpec{.workspaces = 1}); }) ==
          ErrorCode::InvalidSpec);
    ledger.set("t", QuotaSpec{.workspaces = 2});
    ledger.set(kDefaultQuota, QuotaSpec{.workspaces = 1});
    CHECK(codeOf([&] { ledger.set("t", std::nullopt); }) == ErrorCode::InvalidSpec);
    CHECK(ledger.specOf("t").workspaces == 2);
    CHECK(ledger.specOf("other").workspaces == 1);
}

TEST_CASE("claims are admitted at the rate, and Retry-After is the time of its refill",
          "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("t", {.claims_per_second = 2, .claim_burst = 8});
    TimePoint now{1h};
    ledger.admit("t", 8, now);
    const Error error = errorOf([&] { ledger.admit("t", 6, now); });
    CHECK(error.code() == ErrorCode::RateLimited);
    CHECK(error.retryAfter() == 3s);
    CHECK(codeOf([&] { ledger.admit("t", 6, now + 2900ms); }) == ErrorCode::RateLimited);
    CHECK_NOTHROW(ledger.admit("t", 6, now + 3s));
    CHECK(codeOf([&] { ledger.admit("t", 9, now + 1h); }) == ErrorCode::InvalidSpec);
    for (int i = 0; i < 100; ++i) CHECK_NOTHROW(ledger.admit("free", 100, now));
}

TEST_CASE("a pool's limit may not be below the sandboxes guaranteed from it",
          "[unit][controller][quota]") {
    QuotaLedger ledger;
    ledger.load("a", {.guaranteed = {{"p", 3}}});
    ledger.load("b", {.guaranteed = {{"p", 2}, {"q", 1}}});
    CHECK_NOTHROW(ledger.requireFloorsFit("p", 5));
    const Error error = errorOf([&] { ledger.requireFloorsFit("p", 4); });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].pointer == "/spec/limits/members");
}

TEST_CASE("a quota is read with an error for each wrong field", "[unit][controller][quota]") {
    const Json right = parseJson(
        R"({"workspaces":10,"cpu":"1500m","memory":"2Gi","gpus":1,"executions":4,
            "claimsPerSecond":5,"claimBurst":7,"weight":3,"guaranteed":{"p":2}})");
    const QuotaSpec spec = parseQuota(right, "t");
    CHECK(spec.milli_cpu == 1500);
    CHECK(spec.memory_bytes == 2ULL << 30U);
    CHECK(spec.guaranteed.at("p") == 2);
    CHECK(parseQuota(quotaDocument(spec), "t") == spec);

    const Error error = errorOf([] {
        parseQuota(parseJson(R"({"workspaces":-1,"cpu":"much","weight":0,"claimBurst":2,
                                 "guaranteed":{"p":0},"pods":3})"),
                   "t");
    });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    std::set<std::string> pointers;
    for (const FieldError& field : error.fields()) pointers.insert(field.pointer);
    CHECK(pointers == std::set<std::string>{"/workspaces", "/cpu", "/weight", "/claimBurst",
                                            "/guaranteed/p", "/pods"});
    CHECK(codeOf([] { parseQuota(parseJson(R"({"guaranteed":{"p":1}})"), kDefaultQuota); }) ==
          ErrorCode::InvalidSpec);
    CHECK(codeOf([] { parseQuotas(parseJson(R"({"no tenant":{}})")); }) ==
          ErrorCode::InvalidArgument);
}
