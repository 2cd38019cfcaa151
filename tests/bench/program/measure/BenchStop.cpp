#include "tests/bench/program/measure/BenchStop.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace hearth::cli {
namespace {

constexpr unsigned kStepMillis = 50;

std::atomic<bool> g_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

}  // namespace

BenchStop::BenchStop() {
    g_asked = false;
    struct sigaction action {};
    action.sa_handler = [](int) { g_asked = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
}

BenchStop::~BenchStop() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
}

bool BenchStop::asked() noexcept {
    return g_asked;
}

void BenchStop::check() {
    if (g_asked) throw BenchStopped();
}

void BenchStop::sleep(unsigned milliseconds) {
    for (unsigned left = milliseconds; left > 0;) {
        check();
        const unsigned step = std::min(left, kStepMillis);
        ::usleep(step * 1000);
        left -= step;
    }
    check();
}

}  // namespace hearth::cli
