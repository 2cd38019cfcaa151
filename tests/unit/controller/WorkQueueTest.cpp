#include <atomic>
#include <map>
#include <vector>

#include "controller/WorkQueue.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

struct Queue {
    ManualClock clock;
    metrics::Metrics metrics;
    WorkQueue queue{clock, metrics};

    /// How long until a key is due, in milliseconds; takes it and is done with it.
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

const WorkKey kA{"pool", "a"};
const WorkKey kB{"pool", "b"};

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

TEST_CASE("of several delays the earliest wins, and an add wins over all", "[unit][controller]") {
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
                while (const auto key = queue.take(stop)) {
                    if (++at_work.at(key->name) > 1) ++doubles;
                    std::this_thread::yield();
                    --at_work.at(key->name);
                    ++done;
                    queue.done(*key);
                }
            });
        }
        for (int i = 0; i < 3000; ++i) queue.add({"pool", std::string(1, "abc"[i % 3])});
        eventually([&] { return queue.idle(); });
        for (std::jthread& thread : threads) thread.request_stop();
        queue.wakeAll();
    }
    CHECK(doubles == 0);
    CHECK(done >= 3);
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
        const auto key = queue.take(stop);
        taken = key == kB;
    });
    eventually([&] { return began.load(); });
    // Long enough for the worker to wait, or the other way round: both must do.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    queue.addAfter(kB, 1ms);
    CHECK(eventually([&] { return taken.load(); }));
    worker.request_stop();
    keeper.request_stop();
    queue.wakeAll();
}
