#pragma once

#include <memory>
#include <string>

#include "controller/claims/KeyedIds.h"
#include "controller/contract/Contexts.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// The Contexts for the protocol surfaces. Live ones are in the workspaces (ContextSet.h),
/// ended ones in the journal. Thread-safe.
class ContextService final : public Contexts {
public:
    ContextService(WorkspaceAccess& access, WorkspaceTable& table, const KeyedIds& ids,
                   const History& history);

    ContextView create(const Principal& who, const std::string& workspace,
                       const ContextRequest& request) override;
    std::vector<ContextView> list(const Principal& who, const std::string& workspace) override;
    ContextView get(const Principal& who, const std::string& id) override;
    void interrupt(const Principal& who, const std::string& id) override;
    ContextView restart(const Principal& who, const std::string& id) override;
    void remove(const Principal& who, const std::string& id) override;

private:
    /// Returns the workspace that has the context; null if none of this tenant has it.
    std::shared_ptr<Workspace> holder(const Principal& who, const std::string& id) const;
    /// Returns the same, or throws the error that says what became of the context.
    std::shared_ptr<Workspace> require(const Principal& who, const std::string& id);
    /// Throws if its workspace has not answered yet since the start.
    void requireKnown(const Principal& who, const std::string& id);
    /// Runs a call to the agent; then the workspace counts as active.
    template <typename Call>
    auto ask(const std::shared_ptr<Workspace>& workspace, Call call);
    std::string idFor(const Principal& who, const std::string& workspace,
                      const ContextRequest& request) const;
    void publish(const Principal& who, const Workspace& workspace, const std::string& id,
                 const char* type, const char* reason, const char* message);

    WorkspaceAccess& access_;
    WorkspaceTable& table_;
    const KeyedIds ids_;
    const History history_;
};

}  // namespace hearth::controller
