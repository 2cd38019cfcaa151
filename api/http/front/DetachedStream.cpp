#include "api/http/front/DetachedStream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "api/http/front/ResponseHead.h"

namespace hearth::api {
namespace {

constexpr std::size_t kCompactAt = 64U << 10U;
constexpr std::size_t kGrowBy = 32U << 10U;
/// The most bytes of framing for one chunk.
constexpr std::size_t kFraming = 24;
/// The factor for a quiet client that has stopped reading: its queue is small, so it gets longer.
constexpr int kQuietStall = 4;

}  // namespace

DetachedStream::DetachedStream(int fd, std::uint64_t connection, StreamHost& host,
                               const Clock& clock, Settings settings)
    : fd_(fd),
      connection_(connection),
      host_(host),
      clock_(clock),
      settings_(std::move(settings)),
      last_sent_(clock.now()),
      last_progress_(last_sent_) {}

void DetachedStream::queue(std::string_view bytes) {
    if (queue_.size() == queue_at_) last_progress_ = clock_.now();
    // Grows in steps and not by doubling: thousands of queues may be full at a time.
    const std::size_t size = queue_.size() + bytes.size() + kFraming;
    if (size > queue_.capacity()) queue_.reserve((size / kGrowBy + 1) * kGrowBy);
    if (settings_.chunked) {
        queue_.append(chunkLine(bytes.size())).append(bytes).append("\r\n");
    } else {
        queue_.append(bytes);
    }
}

bool DetachedStream::send(std::string bytes) {
    const MutexLock lock(mutex_);
    if (closed_ || broken_ || finished_) return false;
    if (bytes.empty()) return true;
    if (queue_.size() - queue_at_ + bytes.size() > settings_.limit) {
        breakOff();  // the producer does not pause, and the client does not read
        return false;
    }
    const bool direct = queue_.size() == queue_at_;
    queue(bytes);
    last_sent_ = clock_.now();
    if (direct && writeQueued() == State::Broken) return false;
    if (queue_.size() - queue_at_ > kHighWater) above_ = true;
    if (account()) return true;
    breakOff();  // the client does not read its other streams either
    return false;
}

bool DetachedStream::account() {
    const std::size_t size = queue_.size() - queue_at_;
    if (settings_.unread == nullptr || size <= std::max(kHighWater, counted_size_)) return true;
    counted_.reset();
    counted_ = settings_.unread->take(settings_.tenant, size);
    counted_size_ = size;
    return counted_ != nullptr;
}

std::size_t DetachedStream::pending() const {
    const MutexLock lock(mutex_);
    return queue_.size() - queue_at_;
}

std::uint64_t DetachedStream::sent() const {
    const MutexLock lock(mutex_);
    return sent_;
}

void DetachedStream::finish() {
    const MutexLock lock(mutex_);
    if (closed_ || broken_ || finished_) return;
    finished_ = true;
    const bool direct = queue_.size() == queue_at_;
    if (direct) last_progress_ = clock_.now();
    if (settings_.chunked) queue_.append("0\r\n\r\n");
    if (direct && writeQueued() != State::Broken && queue_.size() == queue_at_) {
        host_.streamDone(connection_);
    }
}

void DetachedStream::cut() {
    const MutexLock lock(mutex_);
    if (!closed_ && !broken_) breakOff();
}

/// The socket reports it to the loop.
void DetachedStream::breakOff() {
    broken_ = true;
    ::shutdown(fd_, SHUT_RDWR);
}

bool DetachedStream::closed() const {
    const MutexLock lock(mutex_);
    return closed_ || broken_;
}

void DetachedStream::onDrained(std::function<void()> callback) {
    const MutexLock lock(mutex_);
    on_drained_ = std::move(callback);
}

void DetachedStream::onClosed(std::function<void()> callback) {
    {
        const MutexLock lock(mutex_);
        if (!closed_) {
            on_closed_.push_back(std::move(callback));
            return;
        }
    }
    callback();
}

DetachedStream::State DetachedStream::writeQueued() {
    if (closed_ || broken_) return State::Broken;
    while (queue_at_ < queue_.size()) {
        const ssize_t sent = ::send(fd_, queue_.data() + queue_at_, queue_.size() - queue_at_,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) break;
            broken_ = true;  // EPOLLHUP or EPOLLERR reports it to the loop
            return State::Broken;
        }
        queue_at_ += static_cast<std::size_t>(sent);
        sent_ += static_cast<std::uint64_t>(sent);
        last_progress_ = clock_.now();
    }
    if (queue_at_ == queue_.size()) {
        queue_.clear();
        queue_at_ = 0;
        counted_.reset();
        counted_size_ = 0;
        if (queue_.capacity() > kCompactAt) queue_.shrink_to_fit();
    } else if (queue_at_ > kCompactAt) {
        queue_.erase(0, queue_at_);
        queue_at_ = 0;
    }
    return finished_ && queue_.empty() ? State::Done : State::Open;
}

DetachedStream::State DetachedStream::flush() {
    std::function<void()> drained;
    State state = State::Open;
    {
        const MutexLock lock(mutex_);
        state = writeQueued();
        if (above_ && queue_.size() - queue_at_ < kLowWater) {
            above_ = false;
            drained = on_drained_;
        }
    }
    if (drained && state == State::Open) drained();
    return state;
}

DetachedStream::State DetachedStream::tick(TimePoint now, TimePoint& again) {
    const MutexLock lock(mutex_);
    if (broken_ || closed_) return State::Broken;
    const std::size_t waiting = queue_.size() - queue_at_;
    if (waiting > 0) {
        const bool high = waiting > kHighWater || finished_;
        const auto patience = high ? settings_.stall : kQuietStall * settings_.stall;
        if (now - last_progress_ >= patience) return State::Broken;
    } else if (!settings_.keepalive.empty() && !finished_ &&
               now - last_sent_ >= settings_.keepalive_after) {
        queue(settings_.keepalive);
        last_sent_ = now;
        if (writeQueued() == State::Broken) return State::Broken;
    }
    again = now + settings_.stall / 2;
    if (!settings_.keepalive.empty()) {
        again = std::min(again, std::max(last_sent_ + settings_.keepalive_after,
                                         now + settings_.keepalive_after / 4));
    }
    return State::Open;
}

void DetachedStream::close() {
    std::vector<std::function<void()>> callbacks;
    {
        const MutexLock lock(mutex_);
        if (closed_) return;
        closed_ = true;
        callbacks.swap(on_closed_);
        on_drained_ = nullptr;
        queue_ = {};
        queue_at_ = 0;
        counted_.reset();
    }
    for (const auto& callback : callbacks) callback();
}

}  // namespace hearth::api
