#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

struct Queue {
    ManualClock clock;
    metrics::Metrics metrics;
    WorkQueue queue{clock, metrics};

    /// Takes the next key and completes it. Returns the milliseconds until it was due.
    int dueAfter() {
        for (int ms = 0; ms < 60'000; ++ms) {
            if (const auto key = queue.takeDue()) {
                queue.done(*key);
                return ms;
            }
            clock.advance(1ms);
        }
        return -1;
    }
};

const WorkKey kA{WorkKind::Pool, "a"};
const WorkKey kB{WorkKind::Pool, "b"};

}  // namespace

TEST_CASE("a key added often is worked on once", "[unit][controller]") {
    Queue q;
    q.queue.add(kA);
    q.queue.add(kB);
    q.queue.add(kA);
    CHECK(q.queue.takeDue() == kA);
    CHECK(q.queue.takeDue() == kB);
    CHECK_FALSE(q.queue.takeDue());
    CHECK_FALSE(q.queue.idle());
    q.queue.done(kA);
    q.queue.done(kB);
    CHECK(q.queue.idle());
}

TEST_CASE("a key added while it is worked on comes back afterwards, once", "[unit][controller]") {
    Queue q;
    q.queue.add(kA);
    REQUIRE(q.queue.takeDue());
    q.queue.add(kA);
    q.queue.add(kA);
    CHECK_FALSE(q.queue.takeDue());
    q.queue.done(kA);
    CHECK(q.queue.takeDue() == kA);
    q.queue.done(kA);
    CHECK_FALSE(q.queue.takeDue());
}

TEST_CASE("the earliest of several delays wins, and an add wins over all", "[unit][controller]") {
    Queue q;
    q.queue.addAfter(kA, 50ms);
    q.queue.addAfter(kA, 20ms);
    q.queue.addAfter(kA, 90ms);
    CHECK(q.dueAfter() == 20);
    CHECK(q.dueAfter() == -1);
    q.queue.addAfter(kA, 50ms);
    q.queue.add(kA);
    CHECK(q.dueAfter() == 0);
    CHECK(q.dueAfter() == -1);
    q.queue.addAfter(kA, 0ms);
    CHECK(q.dueAfter() == 0);
}

TEST_CASE("a key delayed while it is worked on is not given to a second worker",
          "[unit][controller]") {
    Queue q;
    q.queue.add(kA);
    REQUIRE(q.queue.takeDue());
    q.queue.addAfter(kA, 1ms);
    q.clock.advance(5ms);
    CHECK_FALSE(q.queue.takeDue());
    q.queue.done(kA);
    CHECK(q.queue.takeDue() == kA);
}

TEST_CASE("failed keys come back after a growing delay with jitter", "[unit][controller]") {
    Queue q;
    int before = 0;
    bool jittered = false;
    for (int failure = 0; failure < 12; ++failure) {
        q.queue.retry(kA);
        const int base = std::min(100 << failure, 30'000);
        const int waited = q.dueAfter();
        CAPTURE(failure, waited);
        CHECK(waited >= base);
        CHECK(waited <= base + base / 4 + 1);
        jittered = jittered || waited > base + 1;
        if (failure < 8) CHECK(waited > before);
        before = waited;
    }
    CHECK(jittered);
    q.queue.settled(kA);
    q.queue.retry(kA);
    CHECK(q.dueAfter() <= 126);
}

TEST_CASE("no key is ever with two workers at once", "[unit][controller]") {
    SystemClock clock;
    metrics::Metrics metrics;
    WorkQueue queue(clock, metrics);
    std::map<std::string, std::atomic<int>> at_work;
    for (const char* name : {"a", "b", "c"}) at_work[name] = 0;
    std::atomic<int> doubles{0};
    std::atomic<int> done{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&](const std::stop_token& stop) {
                while (const auto key = queue.take(Lane::Pools, stop)) {
                    if (++at_work.at(key->name) > 1) ++doubles;
                    std::this_thread::yield();
                    --at_work.at(key->name);
                    ++done;
                    queue.done(*key);
                }
            });
        }
        for (int i = 0; i < 3000; ++i) queue.add({WorkKind::Pool, std::string(1, "abc"[i % 3])});
        eventually([&] { return queue.idle(); });
        for (std::jthread& thread : threads) thread.request_stop();
        queue.wakeAll();
    }
    CHECK(doubles == 0);
    CHECK(done >= 3);
}

TEST_CASE("a key added after a stop does not keep the queue from its end", "[unit][controller]") {
    SystemClock clock;
    metrics::Metrics metrics;
    for (int round = 0; round < 50; ++round) {
        WorkQueue queue(clock, metrics);
        std::jthread keeper([&](const std::stop_token& stop) { queue.keepTime(stop); });
        queue.addAfter(kA, 1ns);
        REQUIRE(queue.take(Lane::Pools, {}) == kA);  // the keeper is about to wait again
        keeper.request_stop();
        queue.wakeAll();
        queue.addAfter(kB, 1h);
        keeper.join();
    }
}

TEST_CASE("a worker that waits for a late key takes an earlier one in time", "[unit][controller]") {
    SystemClock clock;
    metrics::Metrics metrics;
    WorkQueue queue(clock, metrics);
    queue.addAfter(kA, 1h);
    std::jthread keeper([&](const std::stop_token& stop) { queue.keepTime(stop); });
    std::atomic<bool> began{false};
    std::atomic<bool> taken{false};
    std::jthread worker([&](const std::stop_token& stop) {
        began = true;
        const auto key = queue.take(Lane::Pools, stop);
        taken = key == kB;
    });
    eventually([&] { return began.load(); });
    // Usually long enough for the worker to wait first. Either order must work.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    queue.addAfter(kB, 1ms);
    CHECK(eventually([&] { return taken.load(); }));
    worker.request_stop();
    keeper.request_stop();
    queue.wakeAll();
}

namespace {

/// A loop with its real workers. The handlers of the kinds in `slow` and of the names in
/// `slow_names` return only after free() or at the end.
struct Working {
    SystemClock clock;
    metrics::Metrics metrics;
    metrics::Log log{-1};
    WorkQueue queue{clock, metrics};
    std::latch held{1};
    std::mutex mutex;
    std::multiset<std::string> begun;
    std::set<WorkKind> slow;
    std::set<std::string> slow_names;
    metrics::Tracer tracer;
    ReconcileLoop loop{queue, metrics, log, clock, tracer};

    Working() {
        for (const WorkKind kind :
             {WorkKind::Execution, WorkKind::Weight, WorkKind::Pool, WorkKind::Create,
              WorkKind::Sandbox, WorkKind::Unpack, WorkKind::Layer, WorkKind::Forget,
              WorkKind::Files, WorkKind::Lost, WorkKind::Overdue}) {
            loop.handle(kind, [this, kind](const std::string& name) {
                {
                    const std::lock_guard lock(mutex);
                    begun.insert(std::string(nameOf(kind)));
                    begun.insert(std::string(nameOf(kind)) + " " + name);
                }
                if (slow.contains(kind) || slow_names.contains(name)) held.wait();
                return ReconcileResult::settled();
            });
        }
    }
    ~Working() { free(); }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;
    void free() {
        if (!held.try_wait()) held.count_down();
    }
    std::size_t count(const std::string& what) {
        const std::lock_guard lock(mutex);
        return begun.count(what);
    }
    bool begins(const std::string& what) {
        return eventually([&] { return count(what) > 0; });
    }
};

/// A key that counts how often two of its kind are compared.
struct Counted {
    int value = 0;
    static inline std::size_t compared = 0;
    friend bool operator<(const Counted& a, const Counted& b) {
        ++compared;
        return a.value < b.value;
    }
    friend bool operator==(const Counted& a, const Counted& b) { return a.value == b.value; }
};

}  // namespace

TEST_CASE("slow ends, unpackings and questions delay no record, pool or create",
          "[unit][controller]") {
    Working work;
    work.slow = {WorkKind::Sandbox, WorkKind::Unpack, WorkKind::Layer,  WorkKind::Forget,
                 WorkKind::Files,   WorkKind::Lost,   WorkKind::Overdue};
    work.loop.start();
    for (int i = 0; i < 30; ++i) {
        for (const WorkKind kind : work.slow) {
            work.queue.add({kind, "slow" + std::to_string(i)});
        }
    }
    for (const WorkKind kind : {WorkKind::Sandbox, WorkKind::Unpack, WorkKind::Forget,
                                WorkKind::Lost, WorkKind::Overdue}) {
        REQUIRE(work.begins(std::string(nameOf(kind))));
    }
    for (const WorkKind kind :
         {WorkKind::Execution, WorkKind::Weight, WorkKind::Pool, WorkKind::Create}) {
        work.queue.add({kind, "x"});
        CHECK(work.begins(std::string(nameOf(kind)) + " x"));
    }
    work.free();
    CHECK(eventually([&] { return work.queue.idle(); }));
}

TEST_CASE("slow forget calls to agents delay no look at the machine and no question",
          "[unit][controller]") {
    Working work;
    work.slow = {WorkKind::Forget};
    work.loop.start();
    for (int i = 0; i < 30; ++i) {
        work.queue.add({WorkKind::Forget, "slow" + std::to_string(i), "hostile"});
    }
    REQUIRE(work.begins("forget"));
    for (const WorkKind kind : {WorkKind::Files, WorkKind::Lost, WorkKind::Overdue}) {
        work.queue.add({kind, "x"});
        CHECK(work.begins(std::string(nameOf(kind)) + " x"));
    }
    work.queue.add({WorkKind::Forget, "mine", "other"});
    CHECK(work.begins("forget mine"));
    work.free();
    CHECK(eventually([&] { return work.queue.idle(); }));
}

TEST_CASE("slow creates delay no end of a sandbox and no unpacking", "[unit][controller]") {
    Working work;
    work.slow = {WorkKind::Create};
    work.loop.start();
    for (int i = 0; i < 30; ++i) work.queue.add({WorkKind::Create, "slow" + std::to_string(i)});
    REQUIRE(work.begins("create"));
    for (const WorkKind kind : {WorkKind::Sandbox, WorkKind::Unpack, WorkKind::Execution}) {
        work.queue.add({kind, "x"});
        CHECK(work.begins(std::string(nameOf(kind)) + " x"));
    }
}

TEST_CASE("a pool with two hundred creates that hang does not delay another pool's",
          "[unit][controller]") {
    Working work;
    for (int i = 0; i < 200; ++i) work.slow_names.insert("a" + std::to_string(i));
    work.loop.start();
    for (int i = 0; i < 200; ++i) work.queue.add({WorkKind::Create, "a" + std::to_string(i), "a"});
    const LaneRules& rules = rulesOf(Lane::Creates);
    REQUIRE(eventually([&] { return work.count("create") >= rules.workers - rules.reserved; }));
    work.queue.add({WorkKind::Create, "b", "b"});
    CHECK(work.begins("create b"));
    CHECK(work.count("create") == rules.workers - rules.reserved + 1);  // no more of pool a
    work.free();
    CHECK(eventually([&] { return work.count("create") == 201; }));
}

TEST_CASE("groups of a lane take turns", "[unit][controller]") {
    Queue q;
    for (const char* name : {"a1", "a2", "a3"}) q.queue.add({WorkKind::Create, name, "a"});
    for (const char* name : {"b1", "b2"}) q.queue.add({WorkKind::Create, name, "b"});
    q.queue.add({WorkKind::Create, "c1", "c"});
    std::string order;
    while (const auto key = q.queue.takeDue()) {
        order += key->name + " ";
        q.queue.done(*key);
    }
    CHECK(order == "a1 b1 c1 a2 b2 a3 ");
}

TEST_CASE("a sandbox is never created and destroyed at the same time", "[unit][controller]") {
    Queue q;
    const WorkKey make{WorkKind::Create, "sb", "p"};
    const WorkKey end{WorkKind::Sandbox, "sb", "p"};
    q.queue.add(make);
    REQUIRE(q.queue.takeDue() == make);
    q.queue.add(end);
    q.queue.add(make);
    CHECK_FALSE(q.queue.takeDue());
    q.queue.done(make);
    // Both wait now, in two lanes. They still run one after the other.
    const auto first = q.queue.takeDue();
    REQUIRE(first);
    CHECK_FALSE(q.queue.takeDue());
    q.queue.done(*first);
    const auto second = q.queue.takeDue();
    REQUIRE(second);
    CHECK(second->kind != first->kind);
    q.queue.done(*second);
    CHECK(q.queue.idle());
    // Another sandbox's end is not held up.
    q.queue.add(make);
    REQUIRE(q.queue.takeDue());
    q.queue.add({WorkKind::Sandbox, "other", "p"});
    CHECK(q.queue.takeDue());
}

TEST_CASE("the depth of each lane is a metric from the start", "[unit][controller]") {
    Queue q;
    for (const char* lane :
         {"records", "pools", "creates", "destroys", "images", "looks", "forgets", "asks"}) {
        const std::string series = std::string("hearth_workqueue_depth{lane=\"") + lane + "\"} 0";
        CAPTURE(lane);
        CHECK(q.metrics.render().find(series) != std::string::npos);
    }
    q.queue.add({WorkKind::Create, "sb", "p"});
    CHECK(q.metrics.render().find("hearth_workqueue_depth{lane=\"creates\"} 1") !=
          std::string::npos);
    REQUIRE(q.queue.takeDue());
    CHECK(q.metrics.render().find("hearth_workqueue_depth{lane=\"creates\"} 0") !=
          std::string::npos);
}

TEST_CASE("the cost of a delayed key does not grow with their number", "[unit][controller]") {
    DelayedKeys<Counted> keys;
    constexpr int kMany = 20'000;
    for (int i = 0; i < kMany; ++i) {
        keys.put({i}, TimePoint(std::chrono::seconds((i * 7919) % kMany)));
    }
    const auto cost = [](auto call) {
        Counted::compared = 0;
        call();
        return Counted::compared;
    };
    CHECK(cost([&] { keys.put({kMany}, TimePoint(5s)); }) < 200);
    CHECK(cost([&] { keys.put({kMany}, TimePoint(1s)); }) < 200);
    CHECK(cost([&] { CHECK(keys.next() == TimePoint(0s)); }) == 0);
    CHECK(cost([&] { CHECK(keys.take(TimePoint(0s))); }) < 200);
    CHECK(cost([&] { keys.erase({kMany / 2}); }) < 200);
    CHECK(cost([&] { CHECK_FALSE(keys.take(TimePoint(0s))); }) == 0);
}

TEST_CASE("a put of a delayed key reports whether the key is the next of all",
          "[unit][controller]") {
    DelayedKeys<Counted> keys;
    CHECK(keys.put({1}, TimePoint(1h)));
    CHECK(keys.put({2}, TimePoint(1s)));
    CHECK_FALSE(keys.put({3}, TimePoint(2s)));
    CHECK_FALSE(keys.put({2}, TimePoint(5s)));  // an earlier time wins
    CHECK(keys.put({1}, TimePoint(1ms)));
    CHECK(keys.next() == TimePoint(1ms));
}

TEST_CASE("delayed keys become due in order of their times", "[unit][controller]") {
    Queue q;
    for (const int ms : {70, 10, 50, 30}) {
        q.queue.addAfter({WorkKind::Pool, std::to_string(ms)}, std::chrono::milliseconds(ms));
    }
    std::vector<int> order;
    for (int i = 0; i < 4; ++i) order.push_back(q.dueAfter());
    CHECK(order == std::vector<int>{10, 20, 20, 20});
}
