#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "base/Subscribers.h"

namespace hearth::test {

/// Subscriptions that can be counted.
class FakeSubscribers {
public:
    std::shared_ptr<void> add(std::function<void()> changed) {
        auto held = subscribers_.add(std::move(changed));
        void* const shown = held.get();
        ++*count_;
        return {shown, [held, count = count_](void*) mutable {
                    held.reset();
                    --*count;
                }};
    }
    void notify() { subscribers_.notify(); }
    int count() const { return *count_; }

private:
    Subscribers subscribers_;
    std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace hearth::test
