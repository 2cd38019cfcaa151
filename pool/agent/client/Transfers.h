#pragma once

#include <memory>
#include <set>

#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::agent {

/// The files of one sandbox that were passed to this process and are read or written here. Each of
/// them keeps the sandbox's disk in use, so the end of the agent cuts them, however slow a client
/// is. Thread-safe.
class Transfers {
public:
    Transfers() = default;
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;

    /// One such file while it is transferred. Used by one thread; ends before its owner.
    class File {
    public:
        /// Throws AgentLost if the transfers were cut.
        File(Transfers& owner, Fd fd);
        ~File();
        File(const File&) = delete;
        File& operator=(const File&) = delete;

        /// Returns the file for one read or write; after a cut it closes with the last of these.
        /// Throws AgentLost after a cut.
        std::shared_ptr<const Fd> use() const;

    private:
        friend class Transfers;
        /// Needs the owner's mutex, which the checker cannot tell from another owner's.
        std::shared_ptr<const Fd> giveUp() HEARTH_NO_THREAD_SAFETY_ANALYSIS {
            return std::move(fd_);
        }

        Transfers& owner_;
        /// Null once cut.
        std::shared_ptr<const Fd> fd_ HEARTH_GUARDED_BY(owner_.mutex_);
    };

    /// Closes all, permanently. Does not wait.
    void cut();

private:
    mutable Mutex mutex_;
    std::set<File*> files_ HEARTH_GUARDED_BY(mutex_);
    bool cut_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::agent
