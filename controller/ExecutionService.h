#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "controller/Artifacts.h"
#include "controller/Executions.h"
#include "controller/LiveExecution.h"
#include "controller/ReconcileLoop.h"
#include "controller/WorkspaceService.h"

namespace hearth::controller {

/// The Executions that the protocol surfaces see. An execution lives in memory while it runs and
/// until its record is on disk; afterwards it is read from the journal. Thread-safe.
class ExecutionService final : public Executions {
public:
    /// `mirrored`: the kinds of indexes that the server mirrors, as Broker::mirrored() tells.
    ExecutionService(WorkspaceService& workspaces, WorkspaceTable& table, Endings& endings,
                     Journal& journal, pool::ContainerRuntime& runtime, WorkQueue& work,
                     EventLog& events, metrics::Metrics& metrics, metrics::Log& log,
                     const std::string& secret_key, std::vector<std::string> mirrored,
                     const Clock& clock);

    /// Executions that still run are let go: their agents may end them after this service has gone.
    ~ExecutionService() override;
    ExecutionService(const ExecutionService&) = delete;
    ExecutionService& operator=(const ExecutionService&) = delete;

    std::shared_ptr<Execution> start(const Principal& who, const std::string& workspace,
                                     const ExecutionRequest& request) override;
    std::shared_ptr<Execution> startOneShot(const Principal& who, const WorkspaceRequest& where,
                                            const ExecutionRequest& request) override;
    std::shared_ptr<Execution> find(const Principal& who, const std::string& id) override;
    std::vector<std::shared_ptr<Execution>> list(const Principal& who,
                                                 const std::string& workspace) override;
    void signal(const Principal& who, const std::string& id, std::string_view name) override;
    void resize(const Principal& who, const std::string& id, unsigned columns,
                unsigned rows) override;
    void writeStdin(const Principal& who, const std::string& id, std::string_view bytes,
                    bool close) override;
    void kill(const Principal& who, const std::string& id) override;

    /// Before anything is started; what it refers to must live until this has gone. Without it no
    /// artifacts are collected.
    void collectInto(Artifacts& artifacts) { artifacts_ = &artifacts; }
    /// Recovery: takes up an execution that an agent reported.
    void adopt(const std::shared_ptr<Workspace>& workspace, const agent::KnownExecution& known);
    /// Recovery: a context that an agent reported counts from now on.
    void contextFound(const std::string& pool) { metrics_.contextMade(pool); }
    /// Work of kind "execution": its record is on disk, so the agent may forget it, and a one
    /// shot's sandbox may go.
    ReconcileResult settle(const std::string& id);
    /// Work of kind "overdue": condemns sandboxes whose agent let a deadline pass.
    ReconcileResult endOverdue();
    /// Work of kind "forget", named `<workspace>/<execution>`.
    ReconcileResult forget(const std::string& name);

private:
    template <typename Call>
    void ask(const LiveExecution& execution, Call call);
    std::shared_ptr<LiveExecution> launch(const std::shared_ptr<Workspace>& workspace,
                                          const ExecutionRequest& request, const std::string& id,
                                          std::optional<ClaimLedger> ledger);
    std::shared_ptr<LiveExecution> remember(LiveExecution::Facts facts,
                                            const std::shared_ptr<Workspace>& workspace);
    void collectAtEnd(LiveExecution& execution, TimePoint since);
    void ended(const std::shared_ptr<LiveExecution>& execution);
    /// Whether the kernel has killed for memory since this was last asked; false if the runtime
    /// cannot tell.
    bool sawOom(Workspace& workspace);
    void recorded(const std::string& id, const std::shared_ptr<Workspace>& workspace, bool durable,
                  std::size_t kept_bytes);
    std::shared_ptr<LiveExecution> running(const Principal& who, const std::string& id);
    std::shared_ptr<Execution> stored(const ExecutionRecord& record) const;
    std::shared_ptr<Execution> replay(const Principal& who, const std::string& id,
                                      const std::string& fingerprint);

    WorkspaceService& workspaces_;
    WorkspaceTable& table_;
    Endings& endings_;
    Journal& journal_;
    pool::ContainerRuntime& runtime_;
    WorkQueue& work_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    const std::string& secret_key_;
    const std::vector<std::string> mirrored_;
    const Clock& clock_;
    Artifacts* artifacts_ = nullptr;
    /// What the ends of executions and the journal's callbacks come through: they may outlive us.
    struct Gate {
        std::shared_mutex mutex;
        ExecutionService* service = nullptr;  // guarded by mutex; null once we have gone
    };
    const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<LiveExecution>> live_;  // guarded by mutex_
};

}  // namespace hearth::controller
