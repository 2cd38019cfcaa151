#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/Mutex.h"
#include "base/Subscribers.h"
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
class LiveExecution final : public Execution, public agent::ExecSink, public Detached {
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
        std::optional<ClaimLedger> claim;
        TimePoint requested{};
        /// The time by which the agent is to end it; zero: unknown.
        TimePoint ends_by{};
    };
    /// An agent that answers may end an execution this long after its time limit.
    static constexpr std::chrono::seconds kEndGrace{1};
    /// Called once at the end, outside every lock, from the thread that read it.
    using Ended = std::function<void(const std::shared_ptr<LiveExecution>&)>;

    LiveExecution(Facts facts, std::shared_ptr<Workspace> workspace, const Clock& clock);

    /// Call before the work is sent.
    void onEnded(Ended ended) { ended_ = std::move(ended); }
    /// Call before the work is sent. `collect` is called instead of `ended` if artifacts are
    /// wanted; collected() then reports the end.
    void onCollect(Ended collect) { collect_ = std::move(collect); }
    void collected(CollectedArtifacts artifacts);
    /// Call before the work is sent. Asked before the end is reported, on the thread that read it:
    /// true if the runtime must be asked about memory first. Another thread asks, as that may take
    /// long, and then calls looked().
    using MustLook = std::function<bool(const std::shared_ptr<LiveExecution>&)>;
    void onLook(MustLook look) { look_ = std::move(look); }
    void looked();
    /// Takes the execution's part of its tenant's quota, given back at its end. Call before the
    /// work is sent.
    void counts(QuotaLedger::Hold quota) {
        const MutexLock lock(mutex_);
        quota_ = std::move(quota);
    }
    /// Call before the work is sent.
    void onResult(LiveResults::Count count) { results_.onCount(std::move(count)); }
    /// Call before the work is sent. `unread` is called on the thread that brings a long result:
    /// another thread is to call readResult(). The end is not reported before all results are
    /// read. Without this callback, results are read as they come.
    void onUnread(Ended unread) { unread_ = std::move(unread); }
    /// Reads the next waiting result; true if more are waiting.
    bool readResult();
    /// The facts that the agent keeps for a later server.
    Json note() const;
    /// The patterns of its artifacts.
    std::vector<std::string> patterns() const;
    void self(const std::shared_ptr<LiveExecution>& self) { self_ = self; }
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
    /// killed, or lost with its agent; else a child's end. Call before looked().
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
    /// Called after all results are read: collects its artifacts, if any are wanted.
    void wrapUp();
    /// Returns the next piece of output before `end`.
    std::optional<OutputChunk> outputUpTo(std::uint64_t end, std::uint64_t offset,
                                          std::size_t most) const HEARTH_REQUIRES(mutex_);
    /// Called when its artifacts are known: reports the end, now or after a look.
    void conclude();
    void tellEnd();
    void startsAt(TimePoint at) HEARTH_REQUIRES(mutex_);
    /// Not later than the end; TimePoint() if there was none.
    TimePoint firstOutput() const HEARTH_REQUIRES(mutex_);

    const Facts facts_;
    const std::shared_ptr<Workspace> workspace_;
    const Clock& clock_;
    Ended ended_;
    Ended collect_;
    MustLook look_;
    Ended unread_;
    std::weak_ptr<LiveExecution> self_;
    LiveResults results_;
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
    bool concluding_ HEARTH_GUARDED_BY(mutex_) = false;  // its end comes from another thread
    bool unread_end_ HEARTH_GUARDED_BY(mutex_) = false;  // it waits for results to be read
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
