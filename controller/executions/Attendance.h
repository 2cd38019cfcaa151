#pragma once

#include <memory>
#include <utility>

#include "base/Clock.h"
#include "controller/workspaces/Workspace.h"

namespace hearth::controller {

/// A client that waits for an execution or follows it, and its subscription. While one lives, the
/// workspace is not idle, even if its pool does not count running work.
class Attendance {
public:
    Attendance(std::shared_ptr<Workspace> workspace, const Clock& clock,
               std::shared_ptr<void> subscription = {})
        : workspace_(std::move(workspace)), clock_(clock), subscription_(std::move(subscription)) {
        workspace_->attended(clock_.now());
    }
    Attendance(const Attendance&) = delete;
    Attendance& operator=(const Attendance&) = delete;
    ~Attendance() { workspace_->left(clock_.now()); }

private:
    const std::shared_ptr<Workspace> workspace_;
    const Clock& clock_;
    const std::shared_ptr<void> subscription_;
};

}  // namespace hearth::controller
