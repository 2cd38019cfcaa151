#include "base/Subscribers.h"
#include "tests/support/Support.h"

using namespace hearth;

TEST_CASE("subscribers are told until their subscription ends", "[unit][base]") {
    Subscribers subscribers;
    int a = 0;
    int b = 0;
    auto first = subscribers.add([&] { ++a; });
    const auto second = subscribers.add([&] { ++b; });
    subscribers.notify();
    first.reset();
    subscribers.notify();
    CHECK(a == 1);
    CHECK(b == 2);
}

TEST_CASE("a callback may subscribe and end its own subscription", "[unit][base]") {
    Subscribers subscribers;
    std::shared_ptr<void> self;
    std::shared_ptr<void> other;
    int heard = 0;
    int heard_other = 0;
    self = subscribers.add([&] {
        ++heard;
        other = subscribers.add([&] { ++heard_other; });
        self.reset();
    });
    subscribers.notify();
    subscribers.notify();
    CHECK(heard == 1);
    CHECK(heard_other == 1);
}
