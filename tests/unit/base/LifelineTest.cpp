#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/Lifeline.h"
#include "base/ScopeExit.h"
#include "tests/support/Support.h"

namespace hearth {
namespace {

struct Owner {
    int calls = 0;
    const Lifeline<Owner> lifeline{*this};
};

}  // namespace

TEST_CASE("a callback reaches its owner for as long as that lives", "[unit][base]") {
    auto owner = std::make_unique<Owner>();
    const auto line = owner->lifeline.line();
    CHECK(line.reach([](Owner& one) { ++one.calls; }));
    CHECK(owner->calls == 1);
    owner.reset();
    CHECK_FALSE(line.reach([](Owner&) { FAIL("it has gone"); }));
}

TEST_CASE("an owner ends after the calls that are under way", "[unit][base]") {
    auto owner = std::make_unique<Owner>();
    std::atomic<bool> inside = false;
    std::atomic<bool> leave = false;
    std::atomic<bool> gone = false;
    std::jthread caller([&, line = owner->lifeline.line()] {
        line.reach([&](Owner& one) {
            inside = true;
            while (!leave) std::this_thread::yield();
            CHECK_FALSE(gone);
            ++one.calls;
        });
    });
    REQUIRE(test::eventually([&] { return inside.load(); }));
    std::jthread ending([&] {
        owner.reset();
        gone = true;
    });
    leave = true;
    caller.join();
    ending.join();
    CHECK(gone);
}

TEST_CASE("a scope exit runs however the scope is left, unless it is cancelled", "[unit][base]") {
    int done = 0;
    {
        const ScopeExit end([&] { ++done; });
    }
    CHECK(done == 1);
    CHECK_THROWS([&] {
        const ScopeExit end([&] { ++done; });
        throw std::runtime_error("x");
    }());
    CHECK(done == 2);
    {
        ScopeExit end([&] { ++done; });
        end.cancel();
    }
    CHECK(done == 2);
}

}  // namespace hearth
