#include "api/http/front/RequestQueue.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/Error.h"

namespace hearth::api {

namespace {

/// Enough for a client that sends one request after the other.
constexpr int kShortLingerMs = 2;

}  // namespace

RequestQueue::RequestQueue(std::size_t limit, std::size_t lingerers)
    : limit_(limit),
      lingerers_(lingerers),
      kick_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
    if (!kick_) throwErrno("eventfd");
}

bool RequestQueue::push(Connection* connection) {
    bool free_worker = false;
    {
        const MutexLock lock(mutex_);
        if (closed_ || queue_.size() >= limit_) return false;
        queue_.push_back(connection);
        size_.store(queue_.size());
        free_worker = idle_ >= queue_.size();
    }
    if (free_worker) {
        arrived_.notifyOne();
    } else if (lingering_.load() > 0) {
        kick();
    }
    return true;
}

void RequestQueue::kick() {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, and then a kick is already there.
    static_cast<void>(::write(kick_.get(), &one, sizeof(one)) == sizeof(one));
}

Connection* RequestQueue::pop() {
    const MutexLock lock(mutex_);
    ++idle_;
    arrived_.wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) { return closed_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return nullptr;
    Connection* connection = queue_.front();
    queue_.pop_front();
    size_.store(queue_.size());
    return connection;
}

void RequestQueue::close() {
    {
        const MutexLock lock(mutex_);
        closed_ = true;
    }
    arrived_.notifyAll();
    kick();
}

bool RequestQueue::linger(int fd, int wait_ms) {
    if (lingering_.fetch_add(1) >= lingerers_) wait_ms = std::min(wait_ms, kShortLingerMs);
    bool readable = false;
    while (!waiting() && !closed_) {
        std::array<pollfd, 2> entries{{{fd, POLLIN, 0}, {kick_.get(), POLLIN, 0}}};
        const int ready = ::poll(entries.data(), entries.size(), wait_ms);
        readable = ready > 0 && entries[0].revents != 0;
        if (readable || ready <= 0) break;
        std::uint64_t kicks = 0;
        // A thread that sees the queue closed leaves the kick for the other threads.
        if (!closed_) static_cast<void>(::read(kick_.get(), &kicks, sizeof(kicks)));
    }
    lingering_.fetch_sub(1);
    return readable;
}

}  // namespace hearth::api
