#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/layers/Layers.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/reconcile/AgentConnector.h"
#include "controller/reconcile/ImageUnpacking.h"
#include "controller/reconcile/Warmup.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Makes a sandbox from its pool's spec: image, layer, create, agent, warm-up, ready. One step per
/// call, so that nothing slow occupies a worker. Thread-safe; the queue never runs one
/// sandbox twice at once.
class SandboxStarter {
public:
    SandboxStarter(pool::SandboxRuntime& runtime, const Supply& supply, AgentConnector& agents,
                   ImageUnpacking& unpacking, const SpecStore& specs, Layers& layers,
                   const History& history);

    /// Does the work on keys ("create", id): the next step on its way to Ready.
    ReconcileResult create(const pool::SandboxId& id);
    /// Drops a warm-up in progress; false if there is none.
    bool giveUp(const pool::SandboxId& id);
    /// Forgets a sandbox that is gone.
    void forget(const pool::SandboxId& id);

private:
    /// Does a step on the way to Ready.
    ReconcileResult bringUp(const pool::Member& member);
    enum class Start { Asked, Waits, Unwanted };
    /// Requests it from the runtime. Waits: for its image; then its key comes back. Unwanted: its
    /// pool's spec has changed.
    Start start(const pool::Member& member, TimePoint since);
    /// Returns whether its agent can be connected to. Throws if it never will be.
    bool listens(const pool::SandboxId& id, TimePoint since);
    /// Connects, and begins the work that its pool wants done before it is Ready.
    ReconcileResult warmUp(const pool::Member& member, TimePoint since);
    /// Does a further step of the warm-up.
    ReconcileResult goOn(const pool::Member& member);
    /// Makes the metric series of its image's languages, which are known from its first sandbox.
    void bearExecutions(const std::string& pool, const std::vector<std::string>& languages);
    /// Processor time that a sandbox has used so far; 0 if unknown.
    std::uint64_t cpuOf(const pool::SandboxId& id,
                        const std::shared_ptr<agent::AgentClient>& agent);
    void ready(const pool::Member& member, const std::shared_ptr<agent::AgentClient>& agent,
               TimePoint since, TimePoint listened);
    /// `told`: the text of the event; `why` may contain facts for operators only.
    void failed(const pool::Member& member, const std::string& why,
                const std::string& told = "a sandbox could not be started", bool full = false);

    pool::SandboxRuntime& runtime_;
    const Supply supply_;
    AgentConnector& agents_;
    ImageUnpacking& unpacking_;
    const SpecStore& specs_;
    Layers& layers_;
    const History history_;
    Mutex mutex_;
    /// The requested sandboxes, and when each was requested.
    std::map<pool::SandboxId, TimePoint> accepted_ HEARTH_GUARDED_BY(mutex_);
    struct Warming {
        std::shared_ptr<Warmup> warmup;
        TimePoint since;
        TimePoint listened;  ///< when its agent could be connected to
    };
    std::map<pool::SandboxId, Warming> warming_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
