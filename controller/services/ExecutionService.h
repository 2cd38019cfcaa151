#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/claims/WorkspaceOpener.h"
#include "controller/contract/Executions.h"
#include "controller/executions/ArtifactStore.h"
#include "controller/executions/ExecutionStarter.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// The Executions for the protocol surfaces. An execution lives in memory while it runs and
/// until its record is on disk; afterwards it is read from the journal. Thread-safe.
class ExecutionService final : public Executions {
public:
    ExecutionService(WorkspaceAccess& access, WorkspaceOpener& opener, LiveExecutions& live,
                     ExecutionStarter& starter, const ArtifactStore& artifacts, const KeyedIds& ids,
                     const History& history);

    std::shared_ptr<Execution> start(const Principal& who, const std::string& workspace,
                                     const ExecutionRequest& request) override;
    Task<std::shared_ptr<Execution>> startOneShot(Principal who, WorkspaceRequest where,
                                                  ExecutionRequest request) override;
    std::shared_ptr<Execution> find(const Principal& who, const std::string& id) override;
    std::vector<ListedExecution> list(const Principal& who, const std::string& workspace) override;
    std::shared_ptr<Execution> listed(const Principal& who, const std::string& id) override;
    std::vector<std::shared_ptr<Execution>> running(const Principal& who) override;
    void signal(const Principal& who, const std::string& id, std::string_view name) override;
    void resize(const Principal& who, const std::string& id, unsigned columns,
                unsigned rows) override;
    void writeStdin(const Principal& who, const std::string& id, std::string_view bytes,
                    bool close) override;
    void kill(const Principal& who, const std::string& id) override;

private:
    template <typename Call>
    void ask(const LiveExecution& execution, Call call);
    /// Throws Error(NotFound); running() also Error(Conflict) if it has ended.
    std::shared_ptr<LiveExecution> runningOrNull(const Principal& who, const std::string& id);
    std::shared_ptr<LiveExecution> running(const Principal& who, const std::string& id);
    std::shared_ptr<Execution> stored(const ExecutionRecord& record) const;
    /// Starts a one shot in its workspace, which ends if that fails.
    std::shared_ptr<Execution> launch(const WorkspaceOpener::Opened& opened,
                                      const ExecutionRequest& request, const std::string& id,
                                      const TraceContext& trace);
    std::shared_ptr<Execution> replay(const Principal& who, const std::string& id,
                                      const std::string& fingerprint);

    WorkspaceAccess& access_;
    WorkspaceOpener& opener_;
    LiveExecutions& live_;
    ExecutionStarter& starter_;
    const ArtifactStore& artifacts_;
    const KeyedIds ids_;
    const History history_;
};

}  // namespace hearth::controller
