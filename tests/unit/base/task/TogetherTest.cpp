#include <stdexcept>
#include <vector>

#include "base/task/Together.h"
#include "tests/support/Support.h"
#include "tests/unit/base/task/Doors.h"

using namespace hearth;
using test::Door;

namespace {

Task<int> numberAfter(std::shared_ptr<Door> door, int number) {
    co_await door;
    if (number < 0) throw std::runtime_error("negative");
    co_return number;
}

std::vector<Task<int>> pair(const std::shared_ptr<Door>& first,
                            const std::shared_ptr<Door>& second) {
    std::vector<Task<int>> tasks;
    tasks.push_back(numberAfter(first, 1));
    tasks.push_back(numberAfter(second, 2));
    return tasks;
}

}  // namespace

TEST_CASE("whenAll resumes its tasks in any order of their waits", "[unit][base]") {
    const ManualClock clock;
    const auto first = std::make_shared<Door>();
    const auto second = std::make_shared<Door>();
    Task<std::vector<int>> both = whenAll(pair(first, second), clock);
    CHECK_FALSE(both.run());
    second->open();
    CHECK(both.wait()->ready());
    CHECK_FALSE(both.run());
    CHECK_FALSE(both.wait()->ready());
    first->open();
    REQUIRE(both.run());
    CHECK(both.result() == std::vector<int>{1, 2});
}

TEST_CASE("whenAll of no tasks is ready, and throws a failure at the end", "[unit][base]") {
    const ManualClock clock;
    Task<std::vector<int>> none = whenAll(std::vector<Task<int>>(), clock);
    REQUIRE(none.run());
    CHECK(none.result().empty());

    const auto door = std::make_shared<Door>();
    std::vector<Task<int>> tasks;
    tasks.push_back(numberAfter(door, -1));
    tasks.push_back(numberAfter(door, 1));
    Task<std::vector<int>> failing = whenAll(std::move(tasks), clock);
    CHECK_FALSE(failing.run());
    door->open();
    REQUIRE(failing.run());
    CHECK_THROWS_AS(failing.result(), std::runtime_error);
}

TEST_CASE("whenAny ends with the first task that ends", "[unit][base]") {
    const ManualClock clock;
    const auto first = std::make_shared<Door>();
    const auto second = std::make_shared<Door>();
    std::vector<Task<int>> tasks = pair(first, second);
    Task<std::size_t> one = whenAny(tasks, clock);
    CHECK_FALSE(one.run());
    second->open();
    REQUIRE(one.run());
    CHECK(one.result() == 1);
    CHECK(tasks[1].result() == 2);
    CHECK_FALSE(tasks[0].ended());
}

TEST_CASE("every calls its observer in each period while the task waits", "[unit][base]") {
    ManualClock clock;
    const auto door = std::make_shared<Door>();
    int looks = 0;
    Task<int> task = every(std::chrono::seconds(1), clock, numberAfter(door, 3),
                           [&looks](const Waitable&) { ++looks; });
    CHECK_FALSE(task.run());
    CHECK(looks == 1);
    CHECK(task.wait()->until() == clock.now() + std::chrono::seconds(1));
    clock.advance(std::chrono::seconds(1));
    CHECK(task.wait()->over(clock));
    CHECK_FALSE(task.run());
    CHECK(looks == 2);
    door->open();
    REQUIRE(task.run());
    CHECK(looks == 2);
    CHECK(task.result() == 3);
}

TEST_CASE("whenAll resumes a task at its own deadline", "[unit][base]") {
    ManualClock clock;
    const auto late = std::make_shared<Door>(clock.now() + std::chrono::seconds(5));
    const auto never = std::make_shared<Door>();
    Task<std::vector<int>> both = whenAll(pair(late, never), clock);
    CHECK_FALSE(both.run());
    CHECK(both.wait()->until() == late->until());
    clock.advance(std::chrono::seconds(5));
    CHECK_FALSE(both.run());
    CHECK(both.wait()->until() == TimePoint::max());
    never->open();
    CHECK(both.run());
}
