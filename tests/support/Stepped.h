#pragma once

#include <utility>

#include "base/Clock.h"
#include "base/task/Task.h"

namespace hearth::test {

/// A task that a test runs by hand, step by step.
template <typename T>
class Stepped {
public:
    Stepped(Task<T> task, const Clock& clock) : task_(std::move(task)), clock_(clock) {}

    /// Runs the task unless what it waits for is not over; true if it has ended.
    bool run() { return task_.ended() || (due() && task_.run()); }
    /// True if it need not wait, or has not begun.
    bool due() const { return task_.wait() == nullptr || task_.wait()->over(clock_); }
    const WaitablePtr& wait() const { return task_.wait(); }
    T result() { return task_.result(); }

private:
    Task<T> task_;
    const Clock& clock_;
};

}  // namespace hearth::test
