#pragma once

#include <optional>

#include "base/Clock.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Keeps the machine's table of open files from filling up: no limit of the kernel bounds the files
/// of all processes of a sandbox together. When half of the table is used, the tenant whose
/// sandboxes hold the most loses the largest of them, one at a time. Called by one worker at a
/// time.
class OpenFilesWatch {
public:
    OpenFilesWatch(const WorkspaceTable& table, const pool::WarmPool& warm,
                   WorkspaceTerminator& terminator, pool::SandboxRuntime& runtime,
                   const History& history)
        : table_(table),
          warm_(warm),
          terminator_(terminator),
          runtime_(runtime),
          history_(history) {}

    /// Does the work on ("files", "all"). Comes back, sooner if the table fills up; never where the
    /// sandboxes are on other machines.
    ReconcileResult look();

private:
    void endLargest(const FileTable& table);
    /// True while the files of the workspace that was ended last may still be open.
    bool closing() const;

    const WorkspaceTable& table_;
    const pool::WarmPool& warm_;
    WorkspaceTerminator& terminator_;
    pool::SandboxRuntime& runtime_;
    const History history_;
    pool::SandboxId ended_;
    TimePoint ended_at_{};
};

}  // namespace hearth::controller
