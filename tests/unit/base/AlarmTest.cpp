#include <atomic>

#include "base/Alarm.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;
using namespace std::chrono_literals;

TEST_CASE("an alarm rings once for each time it was set", "[unit][base]") {
    Alarm alarm;
    CHECK_FALSE(alarm.rang());
    alarm.ringIn(0ns);
    alarm.wait();
    CHECK_FALSE(alarm.rang());
    alarm.ringIn(-1s);
    CHECK(eventually([&] { return alarm.rang(); }));
    CHECK_FALSE(alarm.rang());
}

TEST_CASE("an alarm set again rings at the last time only", "[unit][base]") {
    Alarm alarm;
    alarm.ringIn(1h);
    alarm.ringIn(1us);
    alarm.wait();
    alarm.ringIn(1us);
    alarm.ringIn(1h);
    CHECK_FALSE(alarm.rang());
}

TEST_CASE("an alarm set by another thread ends the wait", "[unit][base]") {
    Alarm alarm;
    std::atomic<bool> ended{false};
    std::jthread sleeper([&] {
        alarm.wait();
        ended = true;
    });
    alarm.ringIn(1ms);
    CHECK(eventually([&] { return ended.load(); }));
}
