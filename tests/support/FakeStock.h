#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/Error.h"
#include "base/Subscribers.h"
#include "base/task/Task.h"

namespace hearth::test {

/// The sandboxes of the fakes: always ready, unless a test holds them back.
class FakeStock {
public:
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    /// Gives every waiting and later claim a sandbox, or this error.
    void free(std::optional<Error> instead = std::nullopt) {
        {
            const std::lock_guard lock(mutex_);
            held_ = false;
            refusal_ = std::move(instead);
        }
        freed_.notify();
    }
    /// Takes a sandbox for a claim.
    Task<> take() {
        auto turn = std::make_shared<Turn>(*this);
        co_await turn;
        const std::lock_guard lock(mutex_);
        if (refusal_) throw Error(*refusal_);
    }
    /// True if `count` claims wait, at once or soon.
    bool waiting(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_ == count; });
    }

private:
    /// A claim that waits.
    class Turn final : public Waitable {
    public:
        explicit Turn(FakeStock& stock) : stock_(stock) { stock_.count(1); }
        ~Turn() override { stock_.count(-1); }
        bool ready() const override {
            const std::lock_guard lock(stock_.mutex_);
            return !stock_.held_;
        }
        std::shared_ptr<void> subscribe(std::function<void()> wake) override {
            return stock_.freed_.add(std::move(wake));
        }
        std::optional<Progress> progress() const override {
            return Progress{"a sandbox of pool python", 0, 0, {}};
        }

    private:
        FakeStock& stock_;
    };

    void count(int more) {
        const std::lock_guard lock(mutex_);
        waiting_ += static_cast<std::size_t>(more);
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    Subscribers freed_;
    bool held_ = false;             ///< guarded by mutex_
    std::size_t waiting_ = 0;       ///< guarded by mutex_
    std::optional<Error> refusal_;  ///< guarded by mutex_
};

}  // namespace hearth::test
