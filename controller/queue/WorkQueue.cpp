#include "controller/queue/WorkQueue.h"

#include <algorithm>

namespace hearth::controller {
namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds(100);
constexpr auto kLastRetry = std::chrono::seconds(30);

constexpr std::array<Lane, kLanes> kAllLanes{
    Lane::Records, Lane::Pools,   Lane::Creates, Lane::Destroys, Lane::Images,
    Lane::Looks,   Lane::Forgets, Lane::Asks,    Lane::Gpus,     Lane::Probes};

}  // namespace

WorkQueue::WorkQueue(const Clock& clock, metrics::Metrics& metrics)
    : clock_(clock),
      metrics_(metrics),
      lanes_{{Waiting(rulesOf(Lane::Records)), Waiting(rulesOf(Lane::Pools)),
              Waiting(rulesOf(Lane::Creates)), Waiting(rulesOf(Lane::Destroys)),
              Waiting(rulesOf(Lane::Images)), Waiting(rulesOf(Lane::Looks)),
              Waiting(rulesOf(Lane::Forgets)), Waiting(rulesOf(Lane::Asks)),
              Waiting(rulesOf(Lane::Gpus)), Waiting(rulesOf(Lane::Probes))}} {
    for (const Lane lane : kAllLanes) tellDepth(lane);
}

WorkQueue::Subject WorkQueue::subjectOf(const WorkKey& key) {
    // A sandbox is made in one lane and ended in another, but never in both at once.
    return {key.kind == WorkKind::Create ? WorkKind::Sandbox : key.kind, key.name};
}

std::string WorkQueue::groupOf(const WorkKey& key) {
    return key.group.empty() ? std::string(nameOf(key.kind)) : key.group;
}

void WorkQueue::tellDepth(Lane lane) {
    metrics_.workQueueDepth(rulesOf(lane).name, static_cast<double>(waitingIn(lane).line.size()));
}

void WorkQueue::add(const WorkKey& key) {
    Wakes wakes{};
    {
        const MutexLock lock(mutex_);
        addLocked(key, wakes);
    }
    wake(wakes);
}

void WorkQueue::addLocked(const WorkKey& key, Wakes& wakes) {
    delayed_.erase(key);
    if (working_.contains(subjectOf(key))) {
        again_.insert(key);
    } else if (waiting_.insert(key).second) {
        const Lane lane = laneOf(key.kind);
        waitingIn(lane).line.push(groupOf(key), key);
        tellDepth(lane);
        ++wakes[static_cast<std::size_t>(lane)];
    }
}

void WorkQueue::wake(const Wakes& wakes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (unsigned i = 0; i < wakes[lane]; ++i) lanes_[lane].wake.notifyOne();
    }
}

void WorkQueue::addAfter(const WorkKey& key, std::chrono::nanoseconds delay) {
    if (delay <= std::chrono::nanoseconds(0)) return add(key);
    const MutexLock lock(mutex_);
    if (waiting_.contains(key)) return;
    const TimePoint now = clock_.now();
    if (delayed_.put(key, now + delay)) setAlarm(now);
}

void WorkQueue::retry(const WorkKey& key) {
    std::chrono::nanoseconds delay{};
    {
        const MutexLock lock(mutex_);
        const unsigned failures = failures_[key]++;
        delay = std::min<std::chrono::nanoseconds>(kFirstRetry * (1U << std::min(failures, 12U)),
                                                   kLastRetry);
        // xorshift: adds up to a quarter, so that many failed keys do not wake together.
        jitter_ ^= jitter_ << 13U;
        jitter_ ^= jitter_ >> 7U;
        jitter_ ^= jitter_ << 17U;
        delay += delay * static_cast<std::int64_t>(jitter_ % 256) / 1024;
    }
    metrics_.workQueueRetry();
    addAfter(key, delay);
}

void WorkQueue::settled(const WorkKey& key) {
    const MutexLock lock(mutex_);
    failures_.erase(key);
}

std::optional<WorkKey> WorkQueue::take(Lane lane, const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    std::optional<WorkKey> key;
    waitingIn(lane).wake.wait(mutex_, stop, [&]() HEARTH_REQUIRES(mutex_) {
        if (!stop.stop_requested()) key = pop(lane);
        return key.has_value();
    });
    return key;
}

void WorkQueue::keepTime(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        alarm_.wait();
        Wakes wakes{};
        {
            const MutexLock lock(mutex_);
            const TimePoint now = clock_.now();
            promoteDue(now, wakes);
            setAlarm(now);
        }
        wake(wakes);
    }
}

void WorkQueue::setAlarm(TimePoint now) {
    if (ending_) return;  // it already rings, and a worker's last key would delay that
    if (const std::optional<TimePoint> next = delayed_.next()) alarm_.ringIn(*next - now);
}

std::optional<WorkKey> WorkQueue::takeDue() {
    Wakes wakes{};
    const MutexLock lock(mutex_);
    promoteDue(clock_.now(), wakes);
    for (const Lane lane : kAllLanes) {
        if (std::optional<WorkKey> key = pop(lane)) return key;
    }
    return std::nullopt;
}

void WorkQueue::done(const WorkKey& key) {
    Wakes wakes{};
    {
        const MutexLock lock(mutex_);
        const Subject subject = subjectOf(key);
        const auto found = working_.find(subject);
        if (found == working_.end()) return;
        waitingIn(found->second.lane).line.done(found->second.group);
        working_.erase(found);
        for (const WorkKind kind : {key.kind, WorkKind::Create, WorkKind::Sandbox}) {
            const auto again = again_.find({kind, key.name});
            if (again == again_.end() || subjectOf(*again) != subject) continue;
            addLocked(again_.extract(again).value(), wakes);
        }
    }
    wake(wakes);
}

void WorkQueue::wakeAll() {
    const MutexLock lock(mutex_);
    for (Waiting& lane : lanes_) lane.wake.notifyAll();
    ending_ = true;
    alarm_.ringIn(std::chrono::nanoseconds(0));
}

bool WorkQueue::idle() const {
    const MutexLock lock(mutex_);
    return waiting_.empty() && working_.empty();
}

void WorkQueue::promoteDue(TimePoint now, Wakes& wakes) {
    while (const std::optional<WorkKey> key = delayed_.take(now)) addLocked(*key, wakes);
}

std::optional<WorkKey> WorkQueue::pop(Lane lane) {
    WorkLine<WorkKey>& line = waitingIn(lane).line;
    bool moved = false;
    while (std::optional<WorkKey> key = line.pop()) {
        moved = true;
        waiting_.erase(*key);
        const std::string group = groupOf(*key);
        if (working_.emplace(subjectOf(*key), AtWork{lane, group}).second) {
            tellDepth(lane);
            return key;
        }
        // The same sandbox is in work in the other lane: the key comes back after that.
        line.done(group);
        again_.insert(std::move(*key));
    }
    if (moved) tellDepth(lane);
    return std::nullopt;
}

}  // namespace hearth::controller
