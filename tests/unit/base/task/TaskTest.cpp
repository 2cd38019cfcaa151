#include <stdexcept>
#include <string>
#include <thread>

#include "base/task/Blocking.h"
#include "base/task/Task.h"
#include "tests/support/Support.h"
#include "tests/unit/base/task/Doors.h"

using namespace hearth;
using test::Door;
using test::Held;

namespace {

Task<int> doubled(int number) {
    co_return 2 * number;
}

Task<int> after(std::shared_ptr<Door> door, int number) {
    co_await door;
    co_return number;
}

Task<int> sum(std::shared_ptr<Door> first, std::shared_ptr<Door> second) {
    Task<int> one = after(first, 1);
    const int a = co_await one;
    Task<int> two = after(second, 2);
    const int b = co_await two;
    Task<int> three = doubled(a + b);
    co_return co_await three;
}

Task<> failing(std::shared_ptr<Door> door) {
    co_await door;
    throw std::runtime_error("no");
}

Task<std::string> caught(std::shared_ptr<Door> door) {
    std::string what = "nothing";
    Task<> inner = failing(door);
    try {
        co_await inner;
    } catch (const std::runtime_error& error) {
        what = error.what();
    }
    co_return what;
}

Task<int> counted(int times) {
    int total = 0;
    for (int i = 0; i < times; ++i) {
        Task<int> one = doubled(1);
        total += co_await one;
    }
    co_return total;
}

Task<std::unique_ptr<int>> holding(std::shared_ptr<Door> door, Held held) {
    const Held moved = std::move(held);
    Task<int> inner = after(door, 7);
    co_return std::make_unique<int>(co_await inner);
}

}  // namespace

TEST_CASE("a task that waits for nothing ends in its first run", "[unit][base]") {
    Task<int> task = doubled(21);
    CHECK(task.wait() == nullptr);
    REQUIRE(task.run());
    CHECK(task.result() == 42);
}

TEST_CASE("a task resumes in the inner task that waits", "[unit][base]") {
    const auto first = std::make_shared<Door>();
    const auto second = std::make_shared<Door>();
    Task<int> task = sum(first, second);
    CHECK_FALSE(task.run());
    CHECK(task.wait() == first);
    first->open();
    CHECK_FALSE(task.run());
    CHECK(task.wait() == second);
    second->open();
    REQUIRE(task.run());
    CHECK(task.result() == 6);
}

TEST_CASE("a task does not suspend for a ready wait", "[unit][base]") {
    const auto door = std::make_shared<Door>();
    door->open();
    Task<int> task = sum(door, door);
    REQUIRE(task.run());
    CHECK(task.result() == 6);
}

TEST_CASE("the exception of an awaited task reaches the task that awaits it", "[unit][base]") {
    const auto door = std::make_shared<Door>();
    Task<std::string> task = caught(door);
    CHECK_FALSE(task.run());
    door->open();
    REQUIRE(task.run());
    CHECK(task.result() == "no");

    Task<> outermost = failing(door);
    REQUIRE(outermost.run());
    CHECK_THROWS_AS(outermost.result(), std::runtime_error);
}

TEST_CASE("a loop over tasks does not grow the stack", "[unit][base]") {
    Task<int> task = counted(200'000);
    REQUIRE(task.run());
    CHECK(task.result() == 400'000);
}

TEST_CASE("a task that is destroyed gives back what it and its inner tasks hold", "[unit][base]") {
    std::atomic<int> alive = 0;
    const auto door = std::make_shared<Door>();
    {
        Task<std::unique_ptr<int>> never = holding(door, Held(alive));
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
    {
        Task<std::unique_ptr<int>> waiting = holding(door, Held(alive));
        CHECK_FALSE(waiting.run());
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
    Task<std::unique_ptr<int>> whole = holding(door, Held(alive));
    door->open();
    REQUIRE(whole.run());
    CHECK(alive == 0);
    CHECK(*whole.result() == 7);
}

TEST_CASE("a thread that runs a task to its end blocks while it waits", "[unit][base]") {
    const SystemClock clock;
    const auto door = std::make_shared<Door>();
    std::jthread opener([door] { door->open(); });
    CHECK(resultOf(after(door, 5), clock) == 5);
}

TEST_CASE("a thread that runs a task goes on when its time has come", "[unit][base]") {
    const SystemClock clock;
    const auto door = std::make_shared<Door>(clock.now() + std::chrono::milliseconds(1));
    CHECK(resultOf(after(door, 5), clock) == 5);
}

TEST_CASE("a thread that runs a task can be stopped", "[unit][base]") {
    const SystemClock clock;
    const auto door = std::make_shared<Door>();
    std::stop_source stop;
    Task<int> task = after(door, 5);
    std::jthread stopper([&stop] { stop.request_stop(); });
    CHECK_FALSE(runToEnd(task, clock, stop.get_token()));
    door->open();
    Task<int> another = after(door, 5);
    CHECK(runToEnd(another, clock, stop.get_token()));
}

TEST_CASE("a signal wakes once it is set, until it is cleared", "[unit][base]") {
    Signal signal;
    int woken = 0;
    const auto subscription = signal.subscribe([&] { ++woken; });
    CHECK_FALSE(signal.ready());
    signal.set();
    CHECK(signal.ready());
    CHECK(woken == 1);
    signal.clear();
    CHECK_FALSE(signal.ready());
}
