#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/task/Task.h"

namespace hearth {

/// Runs all of the tasks, none waiting for another. Throws, once all have ended, what has ended the
/// first of them that failed.
template <typename T>
Task<std::vector<T>> whenAll(std::vector<Task<T>> tasks, const Clock& clock) {
    bool waits = true;
    while (waits) {
        waits = false;
        std::vector<WaitablePtr> left;
        for (Task<T>& each : tasks) {
            if (each.ended()) continue;
            if (each.wait() == nullptr || each.wait()->over(clock)) each.run();
            if (!each.ended()) left.push_back(each.wait());
        }
        if (left.empty()) continue;
        waits = true;
        auto first = std::make_shared<FirstOf>(std::move(left));
        co_await first;
    }
    std::vector<T> results;
    results.reserve(tasks.size());
    for (Task<T>& each : tasks) results.push_back(each.result());
    co_return results;
}

/// Returns the index of the task that has ended first; its result is its own. All of them belong to
/// the caller, who destroys what he no longer needs. There is at least one.
template <typename T>
Task<std::size_t> whenAny(std::vector<Task<T>>& tasks, const Clock& clock) {
    while (true) {
        std::vector<WaitablePtr> left;
        for (std::size_t at = 0; at < tasks.size(); ++at) {
            Task<T>& each = tasks[at];
            const bool waits = each.wait() != nullptr && !each.wait()->over(clock);
            if (each.ended() || (!waits && each.run())) co_return at;
            left.push_back(each.wait());
        }
        auto first = std::make_shared<FirstOf>(std::move(left));
        co_await first;
    }
}

/// Runs the task, also one that has run and waits, and calls `look` while it waits: at once, then
/// each `period` and after each wake, with what it waits for.
template <typename T>
Task<T> every(std::chrono::nanoseconds period, const Clock& clock, Task<T> task,
              std::function<void(const Waitable&)> look) {
    while (!task.ended()) {
        if (task.wait() == nullptr || task.wait()->over(clock)) {
            task.run();
            continue;
        }
        look(*task.wait());
        auto next = std::make_shared<Timer>(clock.now() + period);
        auto first = std::make_shared<FirstOf>(std::vector<WaitablePtr>{task.wait(), next});
        co_await first;
    }
    co_return task.result();
}

}  // namespace hearth
