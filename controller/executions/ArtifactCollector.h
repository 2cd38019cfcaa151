#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/Executions.h"
#include "controller/executions/ArtifactStore.h"
#include "controller/queue/WorkLine.h"
#include "metrics/Log.h"
#include "pool/agent/client/AgentClient.h"

namespace hearth::controller {

class LiveExecution;

/// Finds the files that runs made or changed, fetches them from their agents and keeps copies in
/// the store. Its threads wait for agents. Tenants take turns, so that a slow sandbox delays only
/// its own tenant; each run gets at most kMostTime. Thread-safe.
class ArtifactCollector {
public:
    ArtifactCollector(ArtifactStore& store, metrics::Log& log, const std::string& secret_key,
                      const Clock& clock);
    ~ArtifactCollector();
    ArtifactCollector(const ArtifactCollector&) = delete;
    ArtifactCollector& operator=(const ArtifactCollector&) = delete;

    /// Waits a few milliseconds, so that files written from now on have a later time than files
    /// written before `written_until`; returns the time to compare with.
    static TimePoint settle(TimePoint written_until, const Clock& clock);
    /// Queues the search for files that the execution has changed since then. The outcome goes to
    /// LiveExecution::collected().
    void collect(std::shared_ptr<LiveExecution> execution, TimePoint since);
    const ArtifactStore& store() const { return store_; }

    /// The last five free threads are for tenants that have none: three tenants whose sandboxes do
    /// not answer occupy at most five of eight.
    static constexpr LaneRules kTurns{"artifacts", 8, 5};

private:
    struct Job {
        std::shared_ptr<LiveExecution> execution;
        TimePoint since;
    };
    /// The budget left for one run's artifacts.
    struct Budget;

    void work(const std::stop_token& stop);
    CollectedArtifacts run(const Job& job);
    Artifact keep(const LiveExecution& execution, const agent::FileStat& stat, std::size_t number,
                  Budget& budget);
    bool copy(agent::AgentClient& agent, const agent::FileStat& stat, ArtifactStore::Copy* copy,
              Artifact& artifact, Budget& budget) const;

    ArtifactStore& store_;
    metrics::Log& log_;
    const std::string& secret_key_;
    const Clock& clock_;
    Mutex mutex_;
    StoppableCondition wanted_;
    WorkLine<Job> jobs_ HEARTH_GUARDED_BY(mutex_);  // tenants in turns
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::controller
