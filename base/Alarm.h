#pragma once

#include <chrono>

#include "base/Fd.h"

namespace hearth {

/// A timer that is set without waking anybody: its owner sleeps in wait() or polls fd(), and the
/// kernel's timer ends the sleep. Waking another thread costs the caller an interrupt to a
/// processor that idles (5 to 50 us on a virtual machine); setting a timer costs less than one. So
/// wherever a request waits for its answer, work that may come a little later is requested with an
/// Alarm.
///
/// May be set from any thread; one thread waits. Counts suspend (CLOCK_BOOTTIME).
class Alarm {
public:
    /// Throws std::system_error.
    Alarm();

    /// Rings once after `delay`, or at once if it is not positive. The last call wins: callers that
    /// may set a later time than other callers must serialise their calls.
    void ringIn(std::chrono::nanoseconds delay);
    /// Blocks until it rings.
    void wait();
    /// True once for each ring; never blocks.
    bool rang();
    /// Readable when it has rung; for epoll.
    int fd() const noexcept { return timer_.get(); }

private:
    Fd timer_;
};

}  // namespace hearth
