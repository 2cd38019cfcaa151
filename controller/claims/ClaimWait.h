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
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// A claim that waits without a thread. Its owner runs the claim with it (ClaimPatience::wait),
/// catches MustWait, subscribes, and runs the same claim again once it is due; this object keeps
/// the state between the runs. Its destructor leaves the line, and a sandbox already given goes to
/// the next claim. One run at a time; the rest is thread-safe.
class ClaimWait {
public:
    /// How far the claim is.
    struct Progress {
        std::string what_for;                          ///< as in "waiting for …"
        std::size_t place = 0;                         ///< in line, from 1; 0: there is no line
        std::size_t of = 0;                            ///< how many stand in it
        std::optional<std::chrono::seconds> estimate;  ///< none where nobody can tell
    };

    /// One thing that the claim waits for; its end takes the claim out of that line.
    class Stage {
    public:
        virtual ~Stage() = default;
        /// The next run of the claim need not wait for this any more.
        virtual bool due() const = 0;
        /// When the claim is to be run again in any case.
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

    // The run's side.

    std::shared_ptr<Stage> stage() const {
        const MutexLock lock(mutex_);
        return stage_;
    }
    void waitFor(std::shared_ptr<Stage> stage) {
        {
            const MutexLock lock(mutex_);
            stage_.swap(stage);
        }  // the one before ends without the lock
    }

    /// The claim is answered: what comes next is another one.
    void forget() {
        in_flight.reset();
        chooseAgain();
        without.clear();
        claim_id.clear();
        claim_ids.clear();
        admitted = false;
    }
    /// The pool that was chosen will not do.
    void chooseAgain() {
        waitFor(nullptr);
        quota.reset();
        places.clear();
        pool.reset();
        image = {};
        asked.reset();
        scene = {};
        attempt = 1;
    }

    std::string claim_id;
    std::vector<std::string> claim_ids;          ///< of a claim of several workspaces
    std::shared_ptr<void> in_flight;             ///< its Idempotency-Key
    PoolPtr pool;                                ///< the one that was chosen
    pool::ImageStages image;                     ///< what it took to have its image
    std::set<std::string> without;               ///< pools that turned out to lack its language
    std::optional<WorkspaceTable::Place> quota;  ///< held while it stands in line
    std::vector<WorkspaceTable::Place> places;   ///< the same of a claim of several workspaces
    bool admitted = false;                       ///< the rate of its tenant's quota has let it in
    std::optional<TimePoint> asked;              ///< for the sandbox that it waits for
    ClaimScene scene;                            ///< when it first asked
    std::uint32_t attempt = 1;

private:
    mutable Mutex mutex_;
    std::shared_ptr<Stage> stage_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
