#include "pool/agent/program/Loop.h"

#include <utility>

namespace hearth::agent {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool Loop::add(int fd, std::uint32_t events, Source& source) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &source;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Loop::change(int fd, std::uint32_t events, Source& source) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &source;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::remove(int fd) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::turn(int timeout_ms) {
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, 64, timeout_ms);
    for (int i = 0; i < n; ++i) static_cast<Source*>(events[i].data.ptr)->ready(events[i].events);
    const std::vector<std::unique_ptr<Source>> dead = std::exchange(graveyard_, {});
}

}  // namespace hearth::agent
