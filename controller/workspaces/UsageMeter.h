#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/Mutex.h"
#include "controller/egress/EgressGateway.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/store/History.h"
#include "controller/usage/UsageBook.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Measures the usage of workspaces: at random times, a part of them each time, and at their end.
/// The time between two looks counts at the most memory that was held meanwhile, so nobody pays
/// less by knowing when looks come. The processor time between a workspace's last look and a crash
/// of the server is lost. If a sandbox is gone before its last look, the time since the one before
/// counts at its limits. Thread-safe.
class UsageMeter {
public:
    /// The bounds of pause(): a quarter of a minute on average.
    static constexpr std::chrono::milliseconds kShortestPause{5000};
    static constexpr std::chrono::milliseconds kLongestPause{25'000};

    UsageMeter(const WorkspaceTable& table, pool::SandboxRuntime& runtime,
               egress::EgressGateway& gateway, const QuotaLedger& quotas, const History& history);

    /// Counts the time of all workspaces, asks the runtime about some of them, beginning with the
    /// ones not seen for the longest time, and writes the usage.
    void look();
    /// Returns the time until the next look, which no tenant can foresee.
    static std::chrono::milliseconds pause();
    /// Counts a workspace about to leave the table; its egress is still open. Asks no agent.
    void ended(const Workspace& workspace);
    /// Takes the last look at a sandbox that is about to be destroyed, in a cluster through its
    /// agent, if there is one. Does nothing for unknown sandboxes.
    void settle(const pool::SandboxId& sandbox,
                const std::shared_ptr<agent::AgentClient>& agent = {});
    UsageBook& book() { return book_; }

private:
    /// The usage of one workspace so far.
    struct Known {
        std::string tenant;
        std::string pool;
        std::uint64_t gpus = 0;
        std::uint64_t milli_cpu = 0;              ///< its limit; 0: unknown
        std::uint64_t memory_bytes = 0;           ///< its limit; 0: unknown
        TimePoint until{};                        ///< its time is counted up to here
        std::optional<std::uint64_t> cpu_ns{};    ///< counted so far; none: earlier use unknown
        TimePoint cpu_until{};                    ///< cpu_room_us has grown up to here
        std::uint64_t cpu_room_us = 0;            ///< what its limit allows beyond what is counted
        std::uint64_t egress_bytes = 0;           ///< counted so far
        std::uint64_t memory_kib = 0;             ///< at the last look; the time since counts at it
        std::uint64_t unseen_ms = 0;              ///< counted since then
        std::uint64_t memory_peak_kib = 0;        ///< the largest that the runtime has reported
        std::optional<TimePoint> silent_since{};  ///< at its end, if it was silent then
        bool ended = false;
        bool settled = false;  ///< its sandbox is gone
    };

    struct Answer {
        std::optional<pool::SandboxUsage> usage{};   ///< none: it is gone, or its agent is silent
        std::optional<std::uint64_t> memory_peak{};  ///< since the last look; none: not counted so
        bool failed = false;                         ///< the runtime could not be asked
    };

    /// Returns the entry of a workspace; makes a new one if needed, and counts its claim.
    Known& known(const WorkspaceFacts& facts) HEARTH_REQUIRES(mutex_);
    /// Returns the entry of a workspace that has not ended; else null.
    Known* open(const WorkspaceFacts& facts) HEARTH_REQUIRES(mutex_);
    /// Counts its time up to now, and its egress.
    void advance(Known& known, std::optional<std::uint64_t> egress_bytes) HEARTH_REQUIRES(mutex_);
    /// True if nothing more of it will be counted.
    bool forgettable(const std::pair<const pool::SandboxId, Known>& entry) const
        HEARTH_REQUIRES(mutex_);
    /// Writes the book, and raises the counters by what it wrote. Not called at each end, for which
    /// a client waits.
    void write(WallTime now);
    std::string classOf(const std::string& tenant) const;
    /// Counts no more than its limits allow: an agent in a cluster may report anything.
    void countUse(Known& known, const Answer& answer) HEARTH_REQUIRES(mutex_);
    /// Raises what the time since the last look costs to its peak of memory, and begins a new
    /// count.
    void countMemory(Known& known, std::uint64_t present_kib, std::uint64_t peak_kib)
        HEARTH_REQUIRES(mutex_);
    /// Counts the processor time up to this total, as far as its limit allows it now.
    void countCpu(Known& known, std::uint64_t cpu_ns) HEARTH_REQUIRES(mutex_);
    /// Counts what an ended workspace may have used since its last look: else a sandbox that ends
    /// itself between two looks would use processors and memory for nothing.
    void countUnseen(Known& known) HEARTH_REQUIRES(mutex_);
    void add(const Known& known, const UsageSums& sums) HEARTH_REQUIRES(mutex_);
    Answer ask(const pool::SandboxId& sandbox, const std::shared_ptr<agent::AgentClient>& agent);
    std::uint64_t egressOf(const WorkspaceFacts& facts) const;

    const WorkspaceTable& table_;
    pool::SandboxRuntime& runtime_;
    egress::EgressGateway& gateway_;
    const QuotaLedger& quotas_;
    const History history_;
    UsageBook book_;
    /// An earlier server has counted the time before this.
    const std::optional<WallTime> counted_before_;
    Mutex mutex_;
    std::map<pool::SandboxId, Known> known_ HEARTH_GUARDED_BY(mutex_);
    std::string next_ HEARTH_GUARDED_BY(mutex_);  ///< the first workspace of the next look
};

}  // namespace hearth::controller
