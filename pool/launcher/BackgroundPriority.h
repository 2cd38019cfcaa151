#pragma once

#include <string>

#include "pool/sys/Cgroups.h"

namespace hearth::pool::launcher {

/// A control group whose processes run only when the processor is idle: for the work after the
/// answers, which would otherwise slow down requests. Measured on two cores, in rounds that each
/// make and end two sandboxes beside the requests: shell 6.4 to 3.6 ms, Python 2.6 to 1.7 ms (p50).
///
/// It must be at the top of the tree, since only siblings yield to each other. Without cpu.idle
/// (before Linux 5.15) or a cpu controller the work runs in the foreground. One thread.
class BackgroundPriority {
public:
    /// Makes the group. `path` is one as in Cgroups.
    BackgroundPriority(const sys::Cgroups& cgroups, const std::string& path);
    /// Removes the group. A process that is still in it keeps it for the next start.
    ~BackgroundPriority();
    BackgroundPriority(const BackgroundPriority&) = delete;
    BackgroundPriority& operator=(const BackgroundPriority&) = delete;

    /// Moves the calling process, which has one thread, into the group; its children inherit that.
    void enter() const noexcept;
    /// Lets all processes of the group run like others, or not.
    void hurry(bool on) noexcept;

private:
    void idle(bool on) const noexcept;

    std::string directory_;  ///< empty without one
    bool hurried_ = false;
};

}  // namespace hearth::pool::launcher
