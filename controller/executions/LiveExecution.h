#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "base/task/Waitable.h"
#include "controller/contract/Executions.h"
#include "controller/executions/LiveResults.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/workspaces/Workspace.h"
#include "pool/agent/protocol/OutputLog.h"

namespace hearth::controller {

class ArtifactStore;

/// An execution that this server started or found again after a restart: the agent's reports about
/// it, kept for all readers. It survives its connection: the last report says where the next one
/// resumes. Thread-safe.
class LiveExecution final : public Execution,
                            public agent::ExecSink,
                            public Detached,
                            public std::enable_shared_from_this<LiveExecution> {
public:
    /// The facts that do not change.
    struct Facts {
        std::string id;
        std::string fingerprint;
        TraceContext trace;    ///< its own span
        std::string caller;    ///< the id of its parent span
        std::string language;  ///< "" for a command
        std::string context;   ///< "" for none, or not yet known
        bool background = false;
        bool paced = false;  ///< its agent waits for unread()
        bool stdin_open = false;
        bool adopted = false;    ///< found again after a restart
        bool had_ended = false;  ///< found after a restart, already ended: not in its context
        std::uint64_t output_limit = 1U << 20U;
        std::uint64_t stdin_bytes = 0;  ///< size of the input given to it
        /// Patterns of its artifacts; empty: none, or, after a restart, the patterns that the
        /// agent reports.
        std::vector<std::string> collect;
        TimePoint changed_since{};  ///< its artifacts are files that changed later
        std::optional<ClaimLedger> claim;
        TimePoint requested{};
        /// The time by which the agent is to end it; zero: unknown.
        TimePoint ends_by{};
    };
    /// An agent that answers may end an execution this long after its time limit.
    static constexpr std::chrono::seconds kEndGrace{1};
    /// Reports of the thread that reads its agent, outside every lock. Each must not block, and
    /// returns false if nobody is there any more.
    struct Reports {
        using Report = std::function<bool(const std::shared_ptr<LiveExecution>&)>;
        /// A long result has come: another thread is to call readResult() until that returns false.
        /// If empty, results are read as they come.
        Report unread;
        /// Once: its agent has reported the end, or is lost. After the rest conclude() is called,
        /// in any thread.
        Report ended;
    };

    /// `count`: the bytes of its results; `quota`: its part of its tenant's, given back at its end.
    LiveExecution(Facts facts, std::shared_ptr<Workspace> workspace, const Clock& clock,
                  Reports reports = {}, LiveResults::Count count = {},
                  QuotaLedger::Hold quota = {});

    /// Reads the next waiting result; true if more are waiting.
    bool readResult();
    /// Is over while no result waits to be read.
    WaitablePtr resultsRead() const { return results_read_; }
    /// True if it has ended by itself and asked for the files that it changed.
    bool wantsArtifacts() const;
    void collected(CollectedArtifacts artifacts);
    /// Reports the end to those who wait. Nothing changes after it.
    void conclude();
    /// The facts that the agent keeps for a later server.
    Json note() const;
    /// The patterns of its artifacts.
    std::vector<std::string> patterns() const;
    void handle(std::shared_ptr<agent::ExecHandle> handle);
    std::shared_ptr<agent::ExecHandle> handle() const;
    const Facts& facts() const { return facts_; }
    const std::shared_ptr<Workspace>& workspace() const { return workspace_; }
    /// The kernel counts its memory kills but names no process. So the count is read if one of this
    /// execution's processes may be among them: it was killed itself, reports a killed child, or
    /// used a large part of `memory_bytes`; or its agent was lost, perhaps to that. A kill that is
    /// not read would be attributed to the next killed execution.
    bool mayHaveMetOom(std::uint64_t memory_bytes) const;
    /// Reports that the kernel killed for memory since the last look: that is its end if it was
    /// killed, or lost with its agent; else a child's end. Call before conclude().
    void oomSeen();
    /// True if its agent was lost before it reported the end.
    bool agentLost() const;
    /// True if its agent reported the end, or was lost: the rest is up to the server.
    bool hasEnded() const;
    /// Wakes those who wait for it: its agent has fallen silent, and its time limit has passed.
    void tellUnanswered() { subscribers_.notify(); }
    /// Ends it as lost: the workspace has ended.
    void endLost();
    /// From now on `stored` reads its output and results from the journal: open references then
    /// cost no more memory for them. Not while it runs.
    void keptBy(std::shared_ptr<Execution> stored);
    /// The context that it runs in; empty for none.
    std::string context() const;
    /// True if it has ended and its context did not outlive it.
    bool tookContext() const;
    /// Its start as in the view, without making a view.
    std::string startedAt() const;
    double runSeconds() const;
    double overheadSeconds() const;
    /// Times of the server's clock; zero: did not happen. An agent's time is never in the future.
    struct Times {
        TimePoint started;
        TimePoint first_output;
        TimePoint ended;
    };
    Times times() const;

    const std::string& id() const override { return facts_.id; }
    ExecutionView viewUpTo(std::uint64_t most) const override;
    bool finished() const override;
    bool unanswered() const override;
    bool wait(std::chrono::milliseconds timeout) override;
    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override;
    ResultPtr resultAt(std::size_t index) const override;
    bool readsDisk() const override;
    std::shared_ptr<void> subscribe(std::function<void()> changed) override;
    std::shared_ptr<void> reading() override;

    void started(const agent::ExecStart& start) override;
    void output(int channel, std::uint64_t offset, std::string_view bytes) override;
    void gap(const agent::OutputGap& gap) override;
    std::optional<std::uint64_t> unread() const override;
    void result(std::string_view json) override;
    void exited(const agent::ExecResult& result) override;
    /// Without an error, its connection has ended, and it waits for the next one.
    void lost(const std::optional<agent::AgentError>& error) override;
    void rejoin(const std::shared_ptr<agent::AgentClient>& agent) override;
    void giveUp(bool lost) override;

    /// The agent's reason for not running it at all, if so.
    std::optional<agent::AgentError> refusal() const;

private:
    void finish(ExecutionStatus status);
    /// Adds output and results to the view; only their sizes, if they have more than `most` bytes.
    void showOutput(ExecutionView& view, std::uint64_t most) const HEARTH_REQUIRES(mutex_);
    void showTimes(ExecutionView& view) const HEARTH_REQUIRES(mutex_);
    /// Adds what its agent reported at its end.
    void showEnd(ExecutionView& view) const HEARTH_REQUIRES(mutex_);
    /// Returns the next piece of output before `end`.
    std::optional<OutputChunk> outputUpTo(std::uint64_t end, std::uint64_t offset,
                                          std::size_t most) const HEARTH_REQUIRES(mutex_);
    void startsAt(TimePoint at) HEARTH_REQUIRES(mutex_);
    /// Not later than the end; TimePoint() if there was none.
    TimePoint firstOutput() const HEARTH_REQUIRES(mutex_);

    const Facts facts_;
    const std::shared_ptr<Workspace> workspace_;
    const Clock& clock_;
    const Reports reports_;
    LiveResults results_;
    const std::shared_ptr<Signal> results_read_ = std::make_shared<Signal>();
    mutable Mutex mutex_;
    agent::OutputLog log_ HEARTH_GUARDED_BY(mutex_);
    bool rejoined_ HEARTH_GUARDED_BY(mutex_) = false;
    std::shared_ptr<Execution> stored_ HEARTH_GUARDED_BY(mutex_);  // then has output and results
    std::string interpreter_ HEARTH_GUARDED_BY(mutex_);
    std::string context_ HEARTH_GUARDED_BY(mutex_);
    ExecutionStatus status_ HEARTH_GUARDED_BY(mutex_) = ExecutionStatus::Running;
    agent::ExecResult result_ HEARTH_GUARDED_BY(mutex_);
    TimePoint started_ HEARTH_GUARDED_BY(mutex_){};
    WallTime started_at_ HEARTH_GUARDED_BY(mutex_){};  ///< the same in wall time
    TimePoint first_output_ HEARTH_GUARDED_BY(mutex_){};
    bool begun_ HEARTH_GUARDED_BY(mutex_) = false;  // its agent has reported the start
    bool has_result_ HEARTH_GUARDED_BY(mutex_) = false;
    bool finished_ HEARTH_GUARDED_BY(mutex_) = false;
    bool reading_ HEARTH_GUARDED_BY(mutex_) = false;  // another thread reads its results
    std::vector<std::string> patterns_ HEARTH_GUARDED_BY(mutex_);  // for its artifacts
    CollectedArtifacts artifacts_ HEARTH_GUARDED_BY(mutex_);
    Condition concluded_;
    std::optional<agent::AgentError> refusal_ HEARTH_GUARDED_BY(mutex_);
    std::optional<RunPackages> packages_ HEARTH_GUARDED_BY(mutex_);
    std::shared_ptr<agent::ExecHandle> handle_ HEARTH_GUARDED_BY(mutex_);
    QuotaLedger::Hold quota_ HEARTH_GUARDED_BY(mutex_);
    Subscribers subscribers_;
    mutable std::uint64_t read_to_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< by its foremost reader
    int readers_ HEARTH_GUARDED_BY(mutex_) = 0;                    ///< a paced run waits for them
    bool paced_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
