#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "controller/Services.h"
#include "tests/support/FakeIds.h"
#include "tests/support/FakeSubscribers.h"

namespace hearth::test {

/// Events in memory, which a test triggers. Thread-safe.
class FakeEvents final : public controller::Events {
public:
    std::vector<controller::Event> list(const Principal&,
                                        const controller::EventQuery& query) override {
        const std::lock_guard lock(mutex_);
        std::vector<controller::Event> out;
        for (const controller::Event& event : events_) {
            if (event.id > query.since && out.size() < query.limit) out.push_back(event);
        }
        return out;
    }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return subscribers_.add(std::move(changed));
    }
    void happen(controller::Event event) {
        {
            const std::lock_guard lock(mutex_);
            event.id = events_.size() + 1;
            event.time = kTime;
            events_.push_back(std::move(event));
        }
        subscribers_.notify();
    }
    void add(const std::string& type) { happen({.type = type, .resource = kWorkspace}); }
    int subscriptions() const { return subscribers_.count(); }

private:
    std::mutex mutex_;
    std::vector<controller::Event> events_;  ///< guarded by mutex_
    FakeSubscribers subscribers_;
};

}  // namespace hearth::test
