#pragma once

#include <thread>

#include "base/Mutex.h"
#include "controller/workspaces/Pauser.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Ends workspaces whose idle time or lifetime has passed, and warns of such ends; has those paused
/// whose pools ask for that.
class Reclaimer {
public:
    Reclaimer(WorkspaceTable& table, WorkspaceTerminator& endings, Pauser& pauser,
              const Clock& clock);
    ~Reclaimer();
    Reclaimer(const Reclaimer&) = delete;
    Reclaimer& operator=(const Reclaimer&) = delete;

    void start();
    /// Ends those due now and returns when to look again. The thread does this each time it wakes.
    TimePoint sweep();

private:
    WorkspaceTable& table_;
    WorkspaceTerminator& endings_;
    Pauser& pauser_;
    const Clock& clock_;
    Mutex mutex_;
    StoppableCondition wake_;
    std::jthread thread_;
};

}  // namespace hearth::controller
