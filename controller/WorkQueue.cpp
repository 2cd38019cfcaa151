#include "controller/WorkQueue.h"

#include <algorithm>

namespace hearth::controller {
namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds(100);
constexpr auto kLastRetry = std::chrono::seconds(30);

}  // namespace

void WorkQueue::add(const WorkKey& key) {
    {
        const std::lock_guard lock(mutex_);
        addLocked(key);
    }
    wake_.notify_one();
}

void WorkQueue::addLocked(const WorkKey& key) {
    delayed_.erase(key);
    if (working_.contains(key)) {
        again_.insert(key);
    } else if (waiting_.insert(key).second) {
        ready_.push_back(key);
        metrics_.workQueueDepth(static_cast<double>(ready_.size()));
    }
}

void WorkQueue::addAfter(const WorkKey& key, std::chrono::nanoseconds delay) {
    if (delay <= std::chrono::nanoseconds(0)) return add(key);
    const std::lock_guard lock(mutex_);
    if (waiting_.contains(key)) return;
    const TimePoint now = clock_.now();
    const TimePoint at = now + delay;
    const auto [entry, fresh] = delayed_.emplace(key, at);
    if (!fresh && entry->second <= at) return;
    entry->second = at;
    setAlarm(now);
}

void WorkQueue::retry(const WorkKey& key) {
    std::chrono::nanoseconds delay{};
    {
        const std::lock_guard lock(mutex_);
        const unsigned failures = failures_[key]++;
        delay = std::min<std::chrono::nanoseconds>(kFirstRetry * (1U << std::min(failures, 12U)),
                                                   kLastRetry);
        // xorshift: up to a quarter more, so that a fleet of failures does not wake together.
        jitter_ ^= jitter_ << 13U;
        jitter_ ^= jitter_ >> 7U;
        jitter_ ^= jitter_ << 17U;
        delay += delay * static_cast<std::int64_t>(jitter_ % 256) / 1024;
    }
    metrics_.workQueueRetry();
    addAfter(key, delay);
}

void WorkQueue::settled(const WorkKey& key) {
    const std::lock_guard lock(mutex_);
    failures_.erase(key);
}

std::optional<WorkKey> WorkQueue::take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, stop, [&] { return !ready_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    return pop();
}

void WorkQueue::keepTime(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        alarm_.wait();
        std::size_t due = 0;
        {
            const std::lock_guard lock(mutex_);
            const TimePoint now = clock_.now();
            due = promoteDue(now);
            setAlarm(now);
        }
        for (; due > 0; --due) wake_.notify_one();
    }
}

void WorkQueue::setAlarm(TimePoint now) {
    if (delayed_.empty()) return;
    const auto next =
        std::min_element(delayed_.begin(), delayed_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    alarm_.ringIn(next->second - now);
}

std::optional<WorkKey> WorkQueue::takeDue() {
    const std::lock_guard lock(mutex_);
    promoteDue(clock_.now());
    return pop();
}

void WorkQueue::done(const WorkKey& key) {
    {
        const std::lock_guard lock(mutex_);
        working_.erase(key);
        if (again_.erase(key) == 0) return;
        addLocked(key);
    }
    wake_.notify_one();
}

void WorkQueue::wakeAll() {
    wake_.notify_all();
    const std::lock_guard lock(mutex_);
    alarm_.ringIn(std::chrono::nanoseconds(0));
}

bool WorkQueue::idle() const {
    const std::lock_guard lock(mutex_);
    return ready_.empty() && working_.empty();
}

std::size_t WorkQueue::promoteDue(TimePoint now) {
    std::size_t promoted = 0;
    for (auto it = delayed_.begin(); it != delayed_.end();) {
        if (it->second > now) {
            ++it;
            continue;
        }
        const WorkKey key = it->first;
        it = delayed_.erase(it);
        addLocked(key);
        ++promoted;
    }
    return promoted;
}

std::optional<WorkKey> WorkQueue::pop() {
    if (ready_.empty()) return std::nullopt;
    WorkKey key = std::move(ready_.front());
    ready_.pop_front();
    waiting_.erase(key);
    working_.insert(key);
    metrics_.workQueueDepth(static_cast<double>(ready_.size()));
    return key;
}

}  // namespace hearth::controller
