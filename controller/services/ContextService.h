#pragma once

#include <memory>
#include <string>

#include "controller/claims/KeyedIds.h"
#include "controller/contract/Contexts.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// The Contexts that the protocol surfaces see. Live ones are in the workspaces (ContextSet.h),
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
    /// The workspace that has the context; null if none of this tenant has.
    std::shared_ptr<Workspace> holder(const Principal& who, const std::string& id) const;
    /// The same, or throws what became of it.
    std::shared_ptr<Workspace> require(const Principal& who, const std::string& id);
    /// Throws where its workspace has not answered yet since the start.
    void requireKnown(const Principal& who, const std::string& id);
    /// A call to the agent; then the workspace counts as active.
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
