#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "controller/egress/transport/ConnectionThreads.h"

// The limits of connections at a time, in all and per tenant. No connection is dropped.

namespace hearth::egress {
namespace {

/// Work that lasts until a test ends it.
struct Held {
    std::promise<void> begun;
    std::promise<void> may_end;
    std::function<void()> work() {
        return [this] {
            begun.set_value();
            may_end.get_future().wait();
        };
    }
};

}  // namespace

TEST_CASE("work beyond the limits waits, and one tenant leaves room for another",
          "[unit][egress]") {
    metrics::Log log(-1);
    Held first;
    Held second;
    Held other;
    std::promise<void> third;
    std::atomic<bool> waited{true};
    ConnectionThreads threads(4, 2, log);  // last: its destructor waits for tasks that use these
    threads.start("a", first.work());
    threads.start("a", second.work());
    first.begun.get_future().wait();
    second.begun.get_future().wait();
    threads.start("a", [&] {
        waited = false;
        third.set_value();
    });
    threads.start("b", other.work());
    other.begun.get_future().wait();  // it runs although it is later in the queue
    CHECK(waited);
    first.may_end.set_value();
    third.get_future().wait();
    second.may_end.set_value();
    other.may_end.set_value();
}

TEST_CASE("a tenant has no more threads than are free, so that another's work begins at once",
          "[unit][egress]") {
    metrics::Log log(-1);
    constexpr int kMost = 8;
    std::array<Held, kMost> greedy;
    Held modest;
    std::atomic<int> began{0};
    ConnectionThreads threads(kMost, kMost - 1, log);
    for (Held& each : greedy) {
        threads.start("greedy", [&began, work = each.work()] {
            ++began;
            work();
        });
    }
    for (int i = 0; i < kMost / 2; ++i) greedy.at(i).begun.get_future().wait();
    CHECK(began == kMost / 2);
    threads.start("modest", modest.work());
    modest.begun.get_future().wait();  // it is later in the queue than theirs
    modest.may_end.set_value();
    for (Held& each : greedy) each.may_end.set_value();
    for (int i = kMost / 2; i < kMost; ++i) greedy.at(i).begun.get_future().wait();
}

TEST_CASE("tenants that take all threads they can leave some for the next", "[unit][egress]") {
    metrics::Log log(-1);
    Held next;
    std::promise<void> end;
    const std::shared_future<void> ends = end.get_future().share();
    std::atomic<int> running{0};
    std::atomic<int> ended{0};
    ConnectionThreads threads(16, 4, log);
    for (const std::string tenant : {"a", "b", "c", "d"}) {
        for (int i = 0; i < 10; ++i) {
            threads.start(tenant, [&, ends] {
                ++running;
                ends.wait();
                ++ended;
            });
        }
    }
    threads.start("next", next.work());
    next.begun.get_future().wait();  // with four for each, none would be left for it
    CHECK(running <= 15);
    end.set_value();
    while (ended < 40) std::this_thread::yield();
    next.may_end.set_value();
}

TEST_CASE("a thousand tasks on four threads all run, whatever they throw", "[unit][egress]") {
    metrics::Log log(-1);
    std::atomic<int> ran{0};
    std::promise<void> all;
    ConnectionThreads threads(4, 4, log);
    for (int i = 0; i < 1'000; ++i) {
        threads.start(i % 2 == 0 ? "a" : "b", [&] {
            if (++ran == 1'000) all.set_value();
            throw std::runtime_error("a task's own");
        });
    }
    all.get_future().wait();
    CHECK(ran == 1'000);
}

TEST_CASE("after stop no task begins, and waiting tasks are dropped", "[unit][egress]") {
    metrics::Log log(-1);
    Held held;
    const auto token = std::make_shared<int>(1);
    ConnectionThreads threads(1, 1, log);
    threads.start("a", held.work());
    held.begun.get_future().wait();
    threads.start("a", [token] { FAIL("has run"); });
    std::thread stopper([&] { threads.stop(); });
    while (token.use_count() > 1) std::this_thread::yield();
    CHECK_FALSE(threads.start("a", [] { FAIL("has run"); }));
    held.may_end.set_value();
    stopper.join();
}

}  // namespace hearth::egress
