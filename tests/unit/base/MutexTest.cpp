#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/Mutex.h"

namespace hearth {
namespace {

struct Guarded {
    Mutex mutex;
    Condition changed;
    StoppableCondition stopped;
    int value HEARTH_GUARDED_BY(mutex) = 0;

    /// Locks the mutex on another thread. Returns true, or never while this thread holds the mutex.
    bool free() {
        bool taken = false;
        std::jthread([&] {
            const MutexLock lock(mutex);
            taken = true;
        }).join();
        return taken;
    }
    void throwWithoutIt() HEARTH_REQUIRES(mutex) {
        const MutexUnlock unlocked(mutex);
        throw std::runtime_error("left while the mutex is given up");
    }
};

}  // namespace

TEST_CASE("a wait sees what another thread has written, and holds the mutex again",
          "[unit][base]") {
    Guarded guarded;
    std::jthread writer;
    int seen = 0;
    {
        const MutexLock lock(guarded.mutex);
        writer = std::jthread([&] {
            const MutexLock writing(guarded.mutex);
            guarded.value = 7;
            guarded.changed.notifyAll();
        });
        guarded.changed.wait(guarded.mutex,
                             [&]() HEARTH_REQUIRES(guarded.mutex) { return guarded.value != 0; });
        seen = guarded.value;
    }
    CHECK(seen == 7);
    CHECK(guarded.free());
}

TEST_CASE("a wait that times out returns false", "[unit][base]") {
    Guarded guarded;
    const MutexLock lock(guarded.mutex);
    CHECK_FALSE(guarded.changed.waitFor(
        guarded.mutex, std::chrono::milliseconds(1),
        [&]() HEARTH_REQUIRES(guarded.mutex) { return guarded.value != 0; }));
}

TEST_CASE("a stop request ends a wait", "[unit][base]") {
    Guarded guarded;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    const MutexLock lock(guarded.mutex);
    CHECK_FALSE(
        guarded.stopped.wait(guarded.mutex, stop.get_token(),
                             [&]() HEARTH_REQUIRES(guarded.mutex) { return guarded.value != 0; }));
}

TEST_CASE("a mutex that was given up is held again after an exception", "[unit][base]") {
    Guarded guarded;
    {
        const MutexLock lock(guarded.mutex);
        CHECK_THROWS(guarded.throwWithoutIt());
        guarded.value = 1;
    }
    CHECK(guarded.free());
}

TEST_CASE("a lock that is given up early lets others in, and may be taken again", "[unit][base]") {
    Guarded guarded;
    UniqueMutexLock lock(guarded.mutex);
    lock.unlock();
    CHECK(guarded.free());
    lock.lock();
    guarded.value = 1;
}

TEST_CASE("readers hold a shared mutex together, a writer waits for them", "[unit][base]") {
    SharedMutex mutex;
    int value = 0;
    std::jthread writer;
    {
        const ReaderLock reader(mutex);
        std::jthread([&] { const ReaderLock other(mutex); }).join();
        writer = std::jthread([&] {
            const WriterLock lock(mutex);
            value = 1;
        });
        CHECK(value == 0);
    }
    writer.join();
    CHECK(value == 1);
}

}  // namespace hearth
