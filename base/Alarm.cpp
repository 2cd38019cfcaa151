#include "base/Alarm.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/Error.h"

namespace hearth {

Alarm::Alarm() : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!timer_) throwErrno("timerfd_create");
}

void Alarm::ringIn(std::chrono::nanoseconds delay) {
    delay = std::max(delay, std::chrono::nanoseconds(1));  // zero would switch it off
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(delay);
    itimerspec when{};
    when.it_value = {seconds.count(), (delay - seconds).count()};
    if (::timerfd_settime(timer_.get(), 0, &when, nullptr) != 0) throwErrno("timerfd_settime");
}

void Alarm::wait() {
    while (!rang()) {
        pollfd entry{timer_.get(), POLLIN, 0};
        if (::poll(&entry, 1, -1) < 0 && errno != EINTR) throwErrno("poll");
    }
}

bool Alarm::rang() {
    std::uint64_t rings = 0;
    return ::read(timer_.get(), &rings, sizeof(rings)) == sizeof(rings);
}

}  // namespace hearth
