#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/Fd.h"
#include "controller/Executions.h"
#include "controller/ReconcileLoop.h"
#include "controller/SignedLink.h"
#include "metrics/Log.h"

namespace hearth::controller {

class Journal;
class LiveExecution;
class WorkspaceTable;

/// Files that runs made: found by the agent, copied into the data directory and kept until an hour
/// after their workspace's end, also over a restart. Two threads of its own copy, so that a slow
/// sandbox delays other runs' artifacts at most, and each run's for kMostTime. Thread-safe.
class Artifacts {
public:
    struct Limits {
        std::uint64_t workspace = 64ULL << 20U;
        std::uint64_t tenant = 512ULL << 20U;
        std::uint64_t all = 2ULL << 30U;
    };

    /// `directory` is made if it is not there; what is in it counts.
    Artifacts(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
              const std::string& secret_key, const Clock& clock, Limits limits);
    Artifacts(std::string directory, WorkspaceTable& table, Journal& journal, metrics::Log& log,
              const std::string& secret_key, const Clock& clock)
        : Artifacts(std::move(directory), table, journal, log, secret_key, clock, Limits{}) {}
    ~Artifacts();
    Artifacts(const Artifacts&) = delete;
    Artifacts& operator=(const Artifacts&) = delete;

    /// Waits, a few milliseconds at most, until a file written from now on can be told from one
    /// that was written before `written_until`; gives the time to compare with.
    static TimePoint settle(TimePoint written_until, const Clock& clock);
    /// Queues the search for what the execution has changed since; LiveExecution::collected()
    /// hears.
    void collect(std::shared_ptr<LiveExecution> execution, TimePoint since);

    struct Kept {
        Fd fd;
        std::uint64_t size = 0;
    };
    /// The copy that a link names. Throws Error(Gone) if it is no longer kept.
    Kept open(const SignedLink& link) const;
    /// Work of kind "artifacts": removes what has been kept long enough.
    ReconcileResult prune();

private:
    struct Job {
        std::shared_ptr<LiveExecution> execution;
        TimePoint since;
    };
    class Copy;

    void work(const std::stop_token& stop);
    std::vector<Artifact> run(const Job& job);
    std::string folder(const std::string& tenant, const std::string& workspace) const;
    bool reserve(const std::string& tenant, const std::string& workspace, std::uint64_t bytes);
    void release(const std::string& tenant, const std::string& workspace, std::uint64_t bytes);
    void countKept();

    const std::string directory_;
    WorkspaceTable& table_;
    Journal& journal_;
    metrics::Log& log_;
    const std::string& secret_key_;
    const Clock& clock_;
    const Limits limits_;
    std::mutex mutex_;
    std::condition_variable_any wanted_;
    std::deque<Job> jobs_;                       // guarded by mutex_
    std::map<std::string, std::uint64_t> kept_;  // guarded by mutex_; by folder below directory_
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::controller
