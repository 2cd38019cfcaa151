#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/Fd.h"

namespace hearth::agent {

/// Something with a descriptor that the loop watches.
class Source {
public:
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    virtual ~Source() = default;
    /// Called on the loop's thread with the epoll events that arrived.
    virtual void ready(std::uint32_t events) = 0;
};

/// The one epoll of the agent. Everything but file operations happens on its thread.
class EventLoop {
public:
    EventLoop();

    /// False if the kernel refuses. The source must stay until remove() and bury().
    bool add(int fd, std::uint32_t events, Source& source);
    void change(int fd, std::uint32_t events, Source& source);
    void remove(int fd);
    /// Destroys a source once no event of the current batch can refer to it.
    void bury(std::unique_ptr<Source> source) { graveyard_.push_back(std::move(source)); }

    /// Waits until an event or `timeout_ns` (negative: no limit) and hands out one batch.
    void turn(std::int64_t timeout_ns);

private:
    Fd epoll_;
    std::vector<std::unique_ptr<Source>> graveyard_;
};

}  // namespace hearth::agent
