#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "pool/agent/protocol/BindLock.h"

using hearth::agent::Binding;
using hearth::agent::BindLock;
using hearth::agent::BindOutcome;

namespace {

Binding claim(const std::string& id, std::uint64_t epoch = 1, const std::string& fingerprint = "f",
              std::int64_t attempt = 1) {
    Binding b;
    b.claim_id = id;
    b.epoch = epoch;
    b.fingerprint = fingerprint;
    b.attempt = attempt;
    b.workspace_id = "ws_" + id;
    return b;
}

}  // namespace

TEST_CASE("the first claim takes the sandbox and its values are kept", "[unit][agent]") {
    BindLock lock;
    CHECK_FALSE(lock.holder());
    CHECK(lock.bind(claim("a", 3, "f", 7), 42) == BindOutcome::Bound);
    REQUIRE(lock.holder());
    CHECK(lock.holder()->claim_id == "a");
    CHECK(lock.holder()->attempt == 7);
    CHECK(lock.holder()->epoch == 3);
    CHECK(lock.holder()->bound_at_ns == 42);
    CHECK(lock.highestEpoch() == 3);
}

TEST_CASE("the same claim again changes nothing", "[unit][agent]") {
    BindLock lock;
    lock.bind(claim("a", 1, "f", 1), 10);
    CHECK(lock.bind(claim("a", 5, "f", 2), 20) == BindOutcome::Repeated);
    CHECK(lock.holder()->attempt == 1);
    CHECK(lock.holder()->epoch == 1);
    CHECK(lock.holder()->bound_at_ns == 10);
    CHECK(lock.highestEpoch() == 5);
}

TEST_CASE("the same claim with another body is a conflict", "[unit][agent]") {
    BindLock lock;
    lock.bind(claim("a"), 1);
    CHECK(lock.bind(claim("a", 1, "g"), 2) == BindOutcome::FingerprintMismatch);
    CHECK(lock.holder()->fingerprint == "f");
}

TEST_CASE("another claim is refused, whatever its epoch", "[unit][agent]") {
    BindLock lock;
    lock.bind(claim("a", 1), 1);
    CHECK(lock.bind(claim("b", 1), 2) == BindOutcome::Held);
    CHECK(lock.bind(claim("b", 99), 2) == BindOutcome::Held);
    CHECK(lock.holder()->claim_id == "a");
}

TEST_CASE("a lower epoch is fenced out, before and after the bind", "[unit][agent]") {
    BindLock lock;
    CHECK(lock.admit(5));
    CHECK(lock.bind(claim("a", 4), 1) == BindOutcome::StaleEpoch);
    CHECK_FALSE(lock.holder());
    CHECK(lock.bind(claim("a", 5), 1) == BindOutcome::Bound);
    CHECK(lock.bind(claim("a", 4), 1) == BindOutcome::StaleEpoch);
    CHECK_FALSE(lock.admit(4));
    CHECK(lock.admit(5));
    CHECK(lock.admit(6));
    CHECK_FALSE(lock.admit(5));
    CHECK(lock.highestEpoch() == 6);
}

TEST_CASE("every order of calls binds exactly one claim, and only lower epochs are stale",
          "[unit][agent]") {
    std::vector<Binding> calls = {claim("a", 1), claim("a", 2, "g"), claim("b", 2), claim("c", 3)};
    std::vector<int> order = {0, 1, 2, 3};
    do {
        BindLock lock;
        int bound = 0;
        std::uint64_t highest = 0;
        std::string first;
        for (const int i : order) {
            const Binding& call = calls[static_cast<std::size_t>(i)];
            const BindOutcome outcome = lock.bind(call, 1);
            if (call.epoch < highest) {
                REQUIRE(outcome == BindOutcome::StaleEpoch);
                continue;
            }
            highest = call.epoch;
            REQUIRE(outcome != BindOutcome::StaleEpoch);
            if (outcome == BindOutcome::Bound) {
                ++bound;
                first = call.claim_id;
            } else {
                REQUIRE((outcome == BindOutcome::Held) == (call.claim_id != first));
            }
        }
        REQUIRE(bound == 1);
        REQUIRE(lock.holder()->claim_id == first);
        REQUIRE(lock.highestEpoch() == highest);
    } while (std::next_permutation(order.begin(), order.end()));
}
