#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api/serve/FreshFacts.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace std::chrono_literals;

TEST_CASE("a runtime is asked about itself four times a second at most", "[unit][serve]") {
    ManualClock clock;
    std::atomic<int> asked = 0;
    bool fails = false;
    program::FreshFacts facts(
        [&] {
            ++asked;
            if (fails) throw std::runtime_error("not now");
            pool::RuntimeFacts told;
            told.name = "fake";
            return told;
        },
        clock);
    {
        std::vector<std::jthread> callers;
        for (int i = 0; i < 8; ++i) callers.emplace_back([&] { facts.get(); });
    }
    CHECK(asked == 1);
    clock.advance(program::FreshFacts::kFresh);
    CHECK(facts.get().name == "fake");
    CHECK(asked == 2);
    clock.advance(program::FreshFacts::kFresh);
    fails = true;
    CHECK_THROWS_WITH(facts.get(), "not now");
    fails = false;
    CHECK(facts.get().name == "fake");
    CHECK(asked == 4);
}

TEST_CASE("a runtime that hangs is described by its last facts", "[unit][serve]") {
    ManualClock clock;
    std::promise<void> answer;
    std::atomic<int> asked = 0;
    program::FreshFacts facts(
        [&] {
            if (++asked == 2) answer.get_future().wait();
            pool::RuntimeFacts told;
            told.name = std::to_string(asked);
            return told;
        },
        clock, 1ms);
    CHECK(facts.get().name == "1");
    clock.advance(program::FreshFacts::kFresh);
    CHECK(facts.get().name == "1");
    CHECK(facts.get().name == "1");
    CHECK(asked == 2);
    answer.set_value();
    CHECK(test::eventually([&] { return facts.get().name == "2"; }));
}
