#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Timeline.h"
#include "controller/spec/PoolSpec.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// The facts of a bind that are known before its sandbox is.
struct ClaimBinding {
    WorkspaceFacts facts;
    agent::BindRequest told;
};

/// A claim that waits without a thread. Its owner runs the claim with it (ClaimPatience::wait),
/// catches MustWait, subscribes, and runs the same claim again once it is due; this object keeps
/// the state between the runs. Its destructor leaves the line, and a sandbox already given goes to
/// the next claim. One run at a time; the rest is thread-safe.
class ClaimWait {
public:
    /// The progress of a waiting claim.
    struct Progress {
        std::string what_for;                          ///< as in "waiting for …"
        std::size_t place = 0;                         ///< in line, from 1; 0: there is no line
        std::size_t of = 0;                            ///< how many stand in line
        std::optional<std::chrono::seconds> estimate;  ///< none if it cannot be estimated
    };

    /// One thing that the claim waits for. Destroying it takes the claim out of that line.
    class Stage {
    public:
        virtual ~Stage() = default;
        /// True if the next run of the claim need not wait for this any more.
        virtual bool due() const = 0;
        /// The time at which the claim is run again in any case.
        virtual TimePoint until() const = 0;
        /// As Subscribers::add().
        virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
        virtual Progress progress() const = 0;
    };

    /// True also if there is nothing to wait for.
    bool due() const {
        const std::shared_ptr<Stage> at = stage();
        return !at || at->due();
    }
    TimePoint until() const {
        const std::shared_ptr<Stage> at = stage();
        return at ? at->until() : TimePoint{};
    }
    std::shared_ptr<void> subscribe(std::function<void()> changed) {
        const std::shared_ptr<Stage> at = stage();
        return at ? at->subscribe(std::move(changed)) : nullptr;
    }
    std::optional<Progress> progress() const {
        const std::shared_ptr<Stage> at = stage();
        return at ? std::optional(at->progress()) : std::nullopt;
    }

    // For the code that runs the claim.

    std::shared_ptr<Stage> stage() const {
        const MutexLock lock(mutex_);
        return stage_;
    }
    void waitFor(std::shared_ptr<Stage> stage) {
        {
            const MutexLock lock(mutex_);
            stage_.swap(stage);
        }  // the previous stage is destroyed without the lock
    }

    /// Clears the state: the claim is answered, and the next run is another claim's.
    void forget() {
        in_flight.reset();
        chooseAgain();
        without.clear();
        claim_id.clear();
        claim_ids.clear();
        admitted = 0;
    }
    /// Drops the chosen pool and its state, because it does not fit.
    void chooseAgain() {
        waitFor(nullptr);
        quota.reset();
        places.clear();
        bindings.clear();
        pool.reset();
        image = {};
        asked.reset();
        scene = {};
        attempt = 1;
    }

    std::string claim_id;
    std::vector<std::string> claim_ids;          ///< for a claim of several workspaces
    std::shared_ptr<void> in_flight;             ///< holds its Idempotency-Key
    PoolPtr pool;                                ///< the chosen pool
    pool::ImageStages image;                     ///< the time that its image took
    std::set<std::string> without;               ///< pools that proved to lack its language
    std::optional<WorkspaceTable::Place> quota;  ///< held while it stands in line
    std::vector<WorkspaceTable::Place> places;   ///< likewise, for a claim of several workspaces
    std::vector<ClaimBinding> bindings;          ///< one for each workspace, with its keys
    std::uint32_t admitted = 0;                  ///< claims that its tenant's rate has counted
    std::optional<TimePoint> asked;              ///< when it asked for the sandbox it waits for
    ClaimScene scene;                            ///< the state when it first asked
    std::uint32_t attempt = 1;

private:
    mutable Mutex mutex_;
    std::shared_ptr<Stage> stage_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
