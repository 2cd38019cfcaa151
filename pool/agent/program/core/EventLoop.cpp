#include "pool/agent/program/core/EventLoop.h"

#include <poll.h>

#include <ctime>
#include <utility>

namespace hearth::agent {

namespace {
constexpr std::int64_t kMs = 1'000'000;
/// For shorter waits, an extra millisecond would be felt.
constexpr std::int64_t kFine = 5 * kMs;
}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool EventLoop::add(int fd, std::uint32_t events, Source& source) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &source;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::change(int fd, std::uint32_t events, Source& source) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &source;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::remove(int fd) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::turn(std::int64_t timeout_ns) {
    int timeout_ms = -1;
    if (timeout_ns > kFine) {
        timeout_ms = static_cast<int>((timeout_ns + kMs - 1) / kMs);
    } else if (timeout_ns >= 0) {  // epoll_wait knows whole milliseconds only
        timeout_ms = 0;
        const timespec left{0, static_cast<long>(timeout_ns)};
        pollfd self{epoll_.get(), POLLIN, 0};
        if (timeout_ns > 0) ppoll(&self, 1, &left, nullptr);
    }
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, 64, timeout_ms);
    for (int i = 0; i < n; ++i) static_cast<Source*>(events[i].data.ptr)->ready(events[i].events);
    const std::vector<std::unique_ptr<Source>> dead = std::exchange(graveyard_, {});
}

}  // namespace hearth::agent
