#pragma once

#include <stop_token>

#include "base/Clock.h"
#include "base/task/Task.h"

namespace hearth {

/// Blocks this thread until the wait is over; false if `stop` was requested before that. Its time
/// is real, also if the clock is a simulated one.
bool blockOn(Waitable& wait, const Clock& clock, const std::stop_token& stop = {});

/// Runs the task in this thread, which blocks while it waits; false if `stop` was requested before
/// its end: then it waits no more and can only be destroyed.
template <typename T>
bool runToEnd(Task<T>& task, const Clock& clock, const std::stop_token& stop = {}) {
    while (!task.run()) {
        const WaitablePtr& wait = task.wait();
        if (!blockOn(*wait, clock, stop)) return false;
    }
    return true;
}

/// Runs the task in this thread to its end and returns its result; throws what has ended it.
template <typename T>
T resultOf(Task<T> task, const Clock& clock) {
    runToEnd(task, clock);
    return task.result();
}

}  // namespace hearth
