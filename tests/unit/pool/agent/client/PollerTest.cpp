#include <catch2/catch.hpp>

#include "pool/agent/client/Poller.h"

using namespace hearth::agent;
using namespace std::chrono_literals;

TEST_CASE("paced output of all executions together has a bounded pace", "[unit][agent]") {
    Poller::Impl poller;
    const Steady::time_point begin = Steady::now();
    CHECK(poller.allowPaced(1'000'000, begin) == 1'000'000);
    CHECK(poller.allowPaced(1'000'000, begin) == 600'000);
    CHECK(poller.allowPaced(1'000'000, begin) == 0);
    CHECK(poller.allowPaced(100'000, begin + 10ms) == 100'000);
    CHECK(poller.allowPaced(1'000'000, begin + 10ms) == 220'000);
    CHECK(poller.allowPaced(9'000'000, begin + 10s) == 1'600'000);
}
