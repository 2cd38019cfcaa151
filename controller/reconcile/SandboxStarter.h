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

/// Makes a sandbox of what its pool declares: image, layer, create, agent, warm-up, ready. One step
/// a call, so that nothing that takes long holds a worker. Thread-safe; the queue never runs one
/// sandbox twice at once.
class SandboxStarter {
public:
    SandboxStarter(pool::SandboxRuntime& runtime, const Supply& supply, AgentConnector& agents,
                   ImageUnpacking& unpacking, const SpecStore& specs, Layers& layers,
                   const History& history);

    /// The work on keys ("create", id): the next step on its way to Ready.
    ReconcileResult create(const pool::SandboxId& id);
    /// Drops a warm-up in progress; false if there is none.
    bool giveUp(const pool::SandboxId& id);
    /// The sandbox has gone.
    void forget(const pool::SandboxId& id);

private:
    /// A step on the way to Ready.
    ReconcileResult bringUp(const pool::Member& member);
    enum class Start { Asked, Waits, Unwanted };
    /// Asks the runtime for it. Waits: for its image, after which its key comes back. Unwanted: its
    /// pool is declared otherwise by now.
    Start start(const pool::Member& member, TimePoint since);
    /// Whether its agent can be connected to. Throws if it never will be.
    bool listens(const pool::SandboxId& id, TimePoint since);
    /// Connects, and begins what its pool wants done before it is Ready.
    ReconcileResult warmUp(const pool::Member& member, TimePoint since);
    /// A further step of that.
    ReconcileResult goOn(const pool::Member& member);
    /// The series of what its image can run, which is known from its first sandbox.
    void bearExecutions(const std::string& pool, const std::vector<std::string>& languages);
    /// Processor time that a sandbox has used so far; 0 where nobody knows.
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
    /// Asked for, and when.
    std::map<pool::SandboxId, TimePoint> accepted_ HEARTH_GUARDED_BY(mutex_);
    struct Warming {
        std::shared_ptr<Warmup> warmup;
        TimePoint since;
        TimePoint listened;  ///< its agent could be connected to
    };
    std::map<pool::SandboxId, Warming> warming_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
