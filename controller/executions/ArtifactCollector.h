#pragma once

#include <string>

#include "controller/contract/Executions.h"
#include "controller/executions/ArtifactStore.h"
#include "metrics/Log.h"
#include "pool/agent/client/AgentClient.h"

namespace hearth::controller {

class LiveExecution;

/// Finds the files that runs made or changed, fetches them from their agents and keeps copies in
/// the store. Thread-safe.
class ArtifactCollector {
public:
    ArtifactCollector(ArtifactStore& store, metrics::Log& log, const std::string& secret_key,
                      const Clock& clock)
        : store_(store), log_(log), secret_key_(secret_key), clock_(clock) {}

    /// Waits a few milliseconds, so that files written from now on have a later time than files
    /// written before `written_until`; returns the time to compare with.
    static TimePoint settle(TimePoint written_until, const Clock& clock);
    /// Returns the files that the execution has changed. Waits for its agent, 20 s at most.
    CollectedArtifacts collect(const LiveExecution& execution);
    const ArtifactStore& store() const { return store_; }

private:
    /// The budget left for one run's artifacts.
    struct Budget;

    Artifact keep(const LiveExecution& execution, const agent::FileStat& stat, std::size_t number,
                  Budget& budget);
    bool copy(agent::AgentClient& agent, const agent::FileStat& stat, ArtifactStore::Copy* copy,
              Artifact& artifact, Budget& budget) const;

    ArtifactStore& store_;
    metrics::Log& log_;
    const std::string& secret_key_;
    const Clock& clock_;
};

}  // namespace hearth::controller
