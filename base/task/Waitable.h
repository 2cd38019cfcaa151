#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Subscribers.h"

namespace hearth {

/// Something that a task waits for. Thread-safe.
class Waitable {
public:
    /// The state of a wait, for people.
    struct Progress {
        std::string what_for;                          ///< as in "waiting for …"
        std::size_t place = 0;                         ///< in line, from 1; 0: there is no line
        std::size_t of = 0;                            ///< how many stand in line
        std::optional<std::chrono::seconds> estimate;  ///< none if it cannot be estimated
    };

    Waitable() = default;
    Waitable(const Waitable&) = delete;
    Waitable& operator=(const Waitable&) = delete;
    virtual ~Waitable() = default;

    /// True if a task need not wait for it any more. Must not block.
    virtual bool ready() const = 0;
    /// The time at which the task goes on in any case.
    virtual TimePoint until() const { return TimePoint::max(); }
    /// Calls `wake` after each change of ready(), perhaps in vain, from any thread; it must not
    /// block. The subscription ends with the returned object, but a call may still run then, so
    /// `wake` owns what it touches. Null if nothing but the time ends the wait.
    virtual std::shared_ptr<void> subscribe(std::function<void()> wake) = 0;
    virtual std::optional<Progress> progress() const { return std::nullopt; }

    /// True if a task that waits for it goes on.
    bool over(const Clock& clock) const { return ready() || clock.now() >= until(); }
};
using WaitablePtr = std::shared_ptr<Waitable>;

/// Waits for a time.
class Timer final : public Waitable {
public:
    explicit Timer(TimePoint time) : time_(time) {}
    bool ready() const override { return false; }
    TimePoint until() const override { return time_; }
    std::shared_ptr<void> subscribe(std::function<void()> /*wake*/) override { return nullptr; }

private:
    const TimePoint time_;
};

/// Awaited, it lets a task go on in its executor, after the other tasks of its tenant.
inline std::shared_ptr<Timer> itsTurn() {
    return std::make_shared<Timer>(TimePoint::min());
}

/// Waits until it is set.
class Signal final : public Waitable {
public:
    void set() {
        set_ = true;
        changes_.notify();
    }
    void clear() { set_ = false; }
    bool ready() const override { return set_; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return changes_.add(std::move(wake));
    }

private:
    std::atomic<bool> set_{false};
    Subscribers changes_;
};

/// Waits for whichever of several comes first.
class FirstOf final : public Waitable {
public:
    explicit FirstOf(std::vector<WaitablePtr> all) : all_(std::move(all)) {}
    bool ready() const override {
        return std::any_of(all_.begin(), all_.end(),
                           [](const WaitablePtr& each) { return each->ready(); });
    }
    TimePoint until() const override {
        TimePoint first = TimePoint::max();
        for (const WaitablePtr& each : all_) first = std::min(first, each->until());
        return first;
    }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        auto held = std::make_shared<std::vector<std::shared_ptr<void>>>();
        for (const WaitablePtr& each : all_) held->push_back(each->subscribe(wake));
        return held;
    }
    /// That of the first one that has any.
    std::optional<Progress> progress() const override {
        for (const WaitablePtr& each : all_) {
            if (std::optional<Progress> found = each->progress()) return found;
        }
        return std::nullopt;
    }

private:
    const std::vector<WaitablePtr> all_;
};

}  // namespace hearth
