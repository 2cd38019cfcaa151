#pragma once

#include <thread>

#include "base/Mutex.h"
#include "controller/workspaces/Pauser.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Ends workspaces whose idle time or lifetime has passed, and warns of such ends; pauses idle
/// workspaces instead if their pools ask for it.
class Reclaimer {
public:
    Reclaimer(WorkspaceTable& table, WorkspaceTerminator& terminator, Pauser& pauser,
              const Clock& clock);
    ~Reclaimer();
    Reclaimer(const Reclaimer&) = delete;
    Reclaimer& operator=(const Reclaimer&) = delete;

    void start();
    /// Ends workspaces that are due and returns when to look again. The thread calls this.
    TimePoint sweep();

private:
    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    Pauser& pauser_;
    const Clock& clock_;
    Mutex mutex_;
    StoppableCondition wake_;
    std::jthread thread_;
};

}  // namespace hearth::controller
