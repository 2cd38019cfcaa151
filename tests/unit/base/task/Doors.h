#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/Subscribers.h"
#include "base/task/Waitable.h"

namespace hearth::test {

/// Something to wait for that the test opens by hand.
class Door final : public Waitable {
public:
    explicit Door(TimePoint until = TimePoint::max()) : until_(until) {}
    bool ready() const override { return open_; }
    TimePoint until() const override { return until_; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return subscribers_.add(std::move(wake));
    }
    void open() {
        open_ = true;
        subscribers_.notify();
    }
    /// Wakes those who wait, in vain.
    void knock() { subscribers_.notify(); }

private:
    const TimePoint until_;
    std::atomic<bool> open_ = false;
    Subscribers subscribers_;
};

/// Counts how many of it are alive: a resource that a task holds.
class Held {
public:
    explicit Held(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
    Held(Held&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
        if (alive_ != nullptr) --*alive_;
    }

private:
    std::atomic<int>* alive_;
};

}  // namespace hearth::test
