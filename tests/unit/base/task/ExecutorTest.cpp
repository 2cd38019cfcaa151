#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "base/task/Blocking.h"
#include "base/task/Executor.h"
#include "tests/support/Support.h"
#include "tests/unit/base/task/Doors.h"

using namespace hearth;
using test::Door;
using test::Held;

namespace {

/// Counts what has ended; the test waits for a number.
class Count {
public:
    void add(const std::string& who = {}) {
        const MutexLock lock(mutex_);
        all_.push_back(who);
        changed_.notifyAll();
    }
    std::vector<std::string> reached(std::size_t number) {
        const MutexLock lock(mutex_);
        CHECK(changed_.waitFor(mutex_, std::chrono::seconds(60),
                               [&]() HEARTH_REQUIRES(mutex_) { return all_.size() >= number; }));
        return all_;
    }

private:
    Mutex mutex_;
    Condition changed_;
    std::vector<std::string> all_ HEARTH_GUARDED_BY(mutex_);
};

Task<> passing(std::shared_ptr<Door> door, Count& count, std::string who, Held held) {
    const Held mine = std::move(held);
    co_await door;
    count.add(who);
}

/// Blocks its thread until the door is open, as a short call does that is not so short.
Task<> blocking(std::shared_ptr<Door> door, Count& begun) {
    begun.add();
    const SystemClock clock;
    blockOn(*door, clock);
    co_return;
}

Task<> throwing() {
    throw std::runtime_error("lost");
    co_return;
}

}  // namespace

TEST_CASE("a task goes on when its wait is ready or late", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count count;
    Executor executor(clock, 2, "test");
    const auto opened = std::make_shared<Door>();
    const auto late = std::make_shared<Door>(clock.now() + std::chrono::milliseconds(5));
    const auto a = executor.start("a", passing(opened, count, "a", Held(alive)));
    const auto b = executor.start("b", passing(late, count, "b", Held(alive)));
    const auto c = executor.start("c", throwing());
    count.reached(1);
    opened->knock();
    opened->open();
    count.reached(2);
    CHECK(test::eventually([&] { return executor.size() == 0 && alive == 0; }));
}

TEST_CASE("a task is cancelled when its holder releases it", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count count;
    const auto door = std::make_shared<Door>();
    Executor executor(clock, 1, "test");
    auto held = executor.start("a", passing(door, count, "a", Held(alive)));
    const auto stays = executor.start("a", passing(door, count, "b", Held(alive)));
    held.reset();
    CHECK(test::eventually([&] { return alive == 1; }));
    door->open();
    CHECK(count.reached(1) == std::vector<std::string>{"b"});
}

TEST_CASE("an executor that ends cancels its tasks", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count count;
    const auto door = std::make_shared<Door>();
    std::shared_ptr<void> held;
    {
        Executor executor(clock, 1, "test");
        held = executor.start("a", passing(door, count, "a", Held(alive)));
    }
    CHECK(alive == 0);
    door->open();
}

TEST_CASE("a tenant whose tasks block leaves a thread to the others", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count begun;
    Count count;
    const auto shut = std::make_shared<Door>();
    const auto open = std::make_shared<Door>();
    open->open();
    Executor executor(clock, 2, "test");
    std::vector<std::shared_ptr<void>> held;
    for (int i = 0; i < 3; ++i) held.push_back(executor.start("rude", blocking(shut, begun)));
    begun.reached(1);
    held.push_back(executor.start("other", passing(open, count, "other", Held(alive))));
    count.reached(1);
    shut->open();
    begun.reached(3);
}

TEST_CASE("four tenants whose tasks block leave a thread to a fifth", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count begun;
    Count count;
    const auto shut = std::make_shared<Door>();
    const auto open = std::make_shared<Door>();
    open->open();
    Executor executor(clock, 16, "test");
    for (const char* tenant : {"a", "b", "c", "d"}) {
        for (int i = 0; i < 20; ++i) executor.run(tenant, blocking(shut, begun));
    }
    begun.reached(15);
    executor.run("e", passing(open, count, "e", Held(alive)));
    CHECK(count.reached(1) == std::vector<std::string>{"e"});
    shut->open();
    begun.reached(80);
}

TEST_CASE("tasks that wake others as they are destroyed end with their executor", "[unit][base]") {
    struct Knocking {
        std::shared_ptr<Door> door;
        ~Knocking() { door->knock(); }
        static Task<> wait(std::shared_ptr<Door> door, Count& begun) {
            const Knocking knocking{door};
            begun.add();
            co_await door;
        }
    };
    const SystemClock clock;
    Count begun;
    const auto door = std::make_shared<Door>(clock.now() + std::chrono::hours(1));
    Executor executor(clock, 2, "test");
    for (int i = 0; i < 8; ++i) executor.run("a", Knocking::wait(door, begun));
    begun.reached(8);
}

TEST_CASE("a cancelled task is destroyed although its tenant has no turn left", "[unit][base]") {
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count begun;
    Count count;
    const auto shut = std::make_shared<Door>();
    const auto door = std::make_shared<Door>();
    Executor executor(clock, 2, "test");
    executor.run("rude", blocking(shut, begun));
    begun.reached(1);
    auto waits = executor.start("rude", passing(door, count, "late", Held(alive)));
    waits.reset();
    CHECK(test::eventually([&] { return alive == 0; }));
    shut->open();
    CHECK(test::eventually([&] { return executor.size() == 0; }));
}

TEST_CASE("a task that lets others go first goes on after them", "[unit][base]") {
    struct Polite {
        static Task<> pass(Count& count) {
            count.add("first");
            auto turn = itsTurn();
            co_await turn;
            count.add("last");
        }
    };
    const SystemClock clock;
    std::atomic<int> alive = 0;
    Count begun;
    Count count;
    const auto shut = std::make_shared<Door>();
    const auto open = std::make_shared<Door>();
    open->open();
    Executor executor(clock, 1, "test");
    executor.run("a", blocking(shut, begun));  // until all stand in line
    begun.reached(1);
    executor.run("a", Polite::pass(count));
    executor.run("a", passing(open, count, "between", Held(alive)));
    shut->open();
    CHECK(count.reached(3) == std::vector<std::string>{"first", "between", "last"});
}

TEST_CASE("tasks hold nothing after any order of wakes and cancels", "[unit][base]") {
    std::mt19937 random(7);
    const SystemClock clock;
    for (int round = 0; round < 60; ++round) {
        std::atomic<int> alive = 0;
        Count count;
        std::vector<std::shared_ptr<Door>> doors;
        for (int i = 0; i < 4; ++i) {
            const auto soon = clock.now() + std::chrono::microseconds(random() % 2000);
            doors.push_back(std::make_shared<Door>(random() % 2 == 0 ? soon : TimePoint::max()));
        }
        Executor executor(clock, 1 + random() % 3, "test");
        std::vector<std::shared_ptr<void>> held;
        {
            std::vector<std::jthread> outside;
            for (const auto& door : doors) {
                outside.emplace_back([door, knocks = random() % 5] {
                    for (unsigned i = 0; i < knocks; ++i) door->knock();
                    door->open();
                });
            }
            for (int i = 0; i < 20; ++i) {
                const std::string tenant(1, static_cast<char>('a' + random() % 3));
                held.push_back(executor.start(
                    tenant, passing(doors[random() % doors.size()], count, tenant, Held(alive))));
                if (random() % 3 == 0) held[random() % held.size()].reset();
            }
        }
        if (random() % 2 == 0) {
            CHECK(test::eventually([&] { return executor.size() == 0; }));
            CHECK(alive == 0);
        }
    }
}
