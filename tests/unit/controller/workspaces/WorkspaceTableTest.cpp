#include <atomic>

#include "controller/workspaces/WorkspaceTable.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

std::shared_ptr<Workspace> workspaceNamed(const std::string& n, const std::string& tenant = "t",
                                          const std::string& sandbox = {}) {
    WorkspaceFacts facts;
    facts.id = "ws_" + n;
    facts.tenant = tenant;
    facts.pool = "p";
    facts.sandbox = sandbox.empty() ? "sb_" + n : sandbox;
    facts.claim_id = "cl_" + n;
    return std::make_shared<Workspace>(facts, nullptr, std::map<std::string, std::string>{},
                                       agent::Deadlines{}, TimePoint{});
}

}  // namespace

TEST_CASE("a workspace is found by its id, claim and sandbox until it is erased",
          "[unit][controller]") {
    WorkspaceTable table;
    table.insert(workspaceNamed("1"));
    table.insert(workspaceNamed("2"));
    REQUIRE(table.find("ws_1"));
    CHECK(table.byClaim("cl_1") == table.find("ws_1"));
    CHECK(table.bySandbox("sb_2") == table.find("ws_2"));
    CHECK(table.countOf("p") == 2);
    CHECK(table.all().size() == 2);
    const std::shared_ptr<Workspace> first = table.find("ws_1");
    table.erase(*first, 0);
    table.erase(*first, 0);
    CHECK_FALSE(table.find("ws_1"));
    CHECK_FALSE(table.byClaim("cl_1"));
    CHECK_FALSE(table.bySandbox("sb_1"));
    CHECK(table.countOf("p") == 1);
    CHECK(table.countOf("q") == 0);
}

TEST_CASE("the end of a claim's first attempt leaves its second alone", "[unit][controller]") {
    WorkspaceTable table;
    const auto lost = workspaceNamed("1", "t", "sb_a");
    const auto bound = workspaceNamed("1", "t", "sb_b");
    table.insert(lost);
    REQUIRE(lost->beginEnd(EndReason::Lost));
    table.insert(bound);
    table.erase(*lost, 0);
    CHECK(table.find("ws_1") == bound);
    CHECK(table.byClaim("cl_1") == bound);
    CHECK(table.bySandbox("sb_b") == bound);
    CHECK_FALSE(table.bySandbox("sb_a"));
    CHECK(table.countOf("p") == 1);
    CHECK(codeOf([&] { auto one = table.reserve("t", "p", 1); }) == ErrorCode::QuotaExceeded);
    table.erase(*bound, 0);
    CHECK_NOTHROW(table.reserve("t", "p", 1));
}

TEST_CASE("a workspace never replaces a workspace with its id or its sandbox",
          "[unit][controller]") {
    WorkspaceTable table;
    const auto first = workspaceNamed("1", "t", "sb_a");
    table.insert(first);
    for (const char* sandbox : {"sb_a", "sb_b"}) {
        CHECK(codeOf([&] { table.insert(workspaceNamed("1", "u", sandbox)); }) ==
              ErrorCode::Conflict);
    }
    CHECK(codeOf([&] { table.insert(workspaceNamed("2", "u", "sb_a")); }) == ErrorCode::Conflict);
    CHECK(table.find("ws_1") == first);
    CHECK(table.bySandbox("sb_a") == first);
    CHECK(table.countOf("p") == 1);
    CHECK_NOTHROW(table.reserve("u", "p", 1));
}

TEST_CASE("a place that did not become a workspace is given back", "[unit][controller]") {
    WorkspaceTable table;
    {
        const auto place = table.reserve("t", "p", 1);
        const Error error = errorOf([&] { auto second = table.reserve("t", "p", 1); });
        CHECK(error.code() == ErrorCode::QuotaExceeded);
        CHECK(error.retryAfter());
        // Another tenant and another pool have their own places.
        CHECK_NOTHROW(table.reserve("u", "p", 1));
        CHECK_NOTHROW(table.reserve("t", "q", 1));
    }
    CHECK_NOTHROW(table.reserve("t", "p", 1));
    CHECK(codeOf([&] { auto none = table.reserve("t", "p", 0); }) == ErrorCode::QuotaExceeded);
}

TEST_CASE("active workspaces count against their tenant's quota", "[unit][controller]") {
    WorkspaceTable table;
    table.insert(workspaceNamed("1"));
    CHECK(codeOf([&] { auto one = table.reserve("t", "p", 1); }) == ErrorCode::QuotaExceeded);
    table.erase(*table.find("ws_1"), 0);
    CHECK_NOTHROW(table.reserve("t", "p", 1));
}

TEST_CASE("a workspace takes over its place, so that it is not counted twice",
          "[unit][controller]") {
    WorkspaceTable table;
    auto place = table.reserve("t", "p", 2);
    table.insert(workspaceNamed("1"), &place);
    {
        const auto second = table.reserve("t", "p", 2);
        CHECK(codeOf([&] { auto third = table.reserve("t", "p", 2); }) == ErrorCode::QuotaExceeded);
    }
    table.erase(*table.find("ws_1"), 0);
    CHECK_FALSE(place.held());
    const auto a = table.reserve("t", "p", 2);
    const auto b = table.reserve("t", "p", 2);
    CHECK(codeOf([&] { auto c = table.reserve("t", "p", 2); }) == ErrorCode::QuotaExceeded);
}

TEST_CASE("many reservations at once never exceed the quota", "[unit][controller]") {
    constexpr int kMost = 7;
    WorkspaceTable table;
    std::atomic<int> held{0};
    std::atomic<int> highest{0};
    std::atomic<int> granted{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 16; ++i) {
            threads.emplace_back([&] {
                for (int round = 0; round < 500; ++round) {
                    try {
                        const auto place = table.reserve("t", "p", kMost);
                        const int now = ++held;
                        int seen = highest;
                        while (seen < now && !highest.compare_exchange_weak(seen, now)) {
                        }
                        ++granted;
                        std::this_thread::yield();
                        --held;
                    } catch (const Error&) {
                        std::this_thread::yield();
                    }
                }
            });
        }
    }
    CHECK(highest <= kMost);
    CHECK(granted > kMost);
    std::vector<WorkspaceTable::Place> places;
    for (int i = 0; i < kMost; ++i) places.push_back(table.reserve("t", "p", kMost));
    CHECK(codeOf([&] { auto more = table.reserve("t", "p", kMost); }) == ErrorCode::QuotaExceeded);
}

TEST_CASE("an expected workspace counts for its tenant until it is known", "[unit][controller]") {
    WorkspaceTable table;
    table.expect({"sb_1", "p", "ws_1", "t", "cl_1"});
    table.expect({"sb_1", "p", "ws_1", "t", "cl_1"});
    CHECK(codeOf([&] { auto one = table.reserve("t", "p", 1); }) == ErrorCode::QuotaExceeded);
    CHECK_NOTHROW(table.reserve("u", "p", 1));
    CHECK(table.expected("sb_1")->workspace == "ws_1");
    CHECK(table.expectedWorkspace("ws_1")->sandbox == "sb_1");
    CHECK(table.expectsClaim("cl_1"));
    CHECK(table.expectsOf("t"));
    CHECK_FALSE(table.expectsOf("u"));
    CHECK_FALSE(table.expectsUnknown());

    table.expect({"sb_2", "p"});
    CHECK(table.expectsUnknown());
    CHECK(table.expectsOf("u"));
    CHECK(table.forgetExpected("sb_2"));
    CHECK_FALSE(table.expectsUnknown());

    table.insert(workspaceNamed("1"));
    CHECK(table.forgetExpected("sb_1"));
    CHECK_FALSE(table.forgetExpected("sb_1"));
    CHECK(codeOf([&] { auto one = table.reserve("t", "p", 1); }) == ErrorCode::QuotaExceeded);
    table.erase(*table.find("ws_1"), 0);
    CHECK_NOTHROW(table.reserve("t", "p", 1));
}
