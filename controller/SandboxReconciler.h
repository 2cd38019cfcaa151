#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "controller/Breaker.h"
#include "controller/ClaimQueue.h"
#include "controller/Endings.h"
#include "controller/Layers.h"
#include "controller/ReconcileLoop.h"
#include "controller/SpecStore.h"
#include "controller/Warmup.h"
#include "pool/ClaimMarks.h"
#include "pool/WarmPool.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::controller {

/// Brings one sandbox to where its member's phase says it should be: makes what is Creating, ends
/// what is Draining, Failed or unknown, and looks after what the runtime has news of. The queue
/// never runs one sandbox twice at once, so its create and its destroy cannot meet.
class SandboxReconciler {
public:
    SandboxReconciler(pool::ContainerRuntime& runtime, pool::WarmPool& warm,
                      pool::ClaimMarks& marks, agent::Poller& poller, const SpecStore& specs,
                      Endings& endings, ClaimQueue& claims, Breaker& breaker, WorkQueue& work,
                      EventLog& events, metrics::Metrics& metrics, metrics::Log& log,
                      Layers& layers, const Clock& clock);
    /// Agents may outlive this: what they lose from now on is told to nobody.
    ~SandboxReconciler();
    SandboxReconciler(const SandboxReconciler&) = delete;
    SandboxReconciler& operator=(const SandboxReconciler&) = delete;

    ReconcileResult reconcile(const pool::SandboxId& id);
    /// The work on keys ("weight", id): a sandbox that is Ready goes before the others, so that its
    /// claim need not wait among busy ones; in every other phase it is like them.
    ReconcileResult weigh(const pool::SandboxId& id);
    /// The fencing number of this server's life; set once by recovery, before the loop starts.
    void epoch(std::uint64_t epoch) { epoch_ = epoch; }
    std::uint64_t epoch() const { return epoch_; }
    /// At least this from now on; recovery learns of higher ones from agents.
    void raiseEpoch(std::uint64_t least) {
        std::uint64_t now = epoch_;
        while (now < least && !epoch_.compare_exchange_weak(now, least)) {
        }
    }

    /// A control connection to a sandbox's agent that reports its loss.
    std::shared_ptr<agent::AgentClient> connect(const pool::SandboxId& id,
                                                std::chrono::milliseconds timeout);
    /// Recovery: an agent that was lost before its sandbox was a member has been heard by nobody.
    void notice(const pool::SandboxId& id, const agent::AgentClient& agent) {
        if (agent.lost()) endings_.lost(id, "its agent was lost while the server started");
    }

private:
    /// What a client keeps instead of `this`: it is told of losses by the thread that reads, when
    /// the services may be on their way out.
    struct Gate {
        std::shared_mutex mutex;
        Endings* endings = nullptr;  // guarded by mutex; null once the reconciler has gone
    };

    /// A step on the way to Ready.
    ReconcileResult bringUp(const pool::Member& member);
    /// Asks the runtime for it; false if its pool is declared otherwise by now.
    bool start(const pool::Member& member, TimePoint since);
    /// Whether its agent can be connected to. Throws if it never will be.
    bool listens(const pool::SandboxId& id, TimePoint since);
    /// Connects, and begins what its pool wants done before it is Ready.
    ReconcileResult warmUp(const pool::Member& member, TimePoint since);
    /// A further step of that.
    ReconcileResult goOn(const pool::Member& member);
    void ready(const pool::Member& member, const std::shared_ptr<agent::AgentClient>& agent,
               TimePoint since, TimePoint listened);
    /// `told`: what the event says; `why` may name what only operators may see.
    void failed(const pool::Member& member, const std::string& why,
                const std::string& told = "a sandbox could not be started");
    /// Forgets a warm-up under way; false if there is none.
    bool giveUp(const pool::SandboxId& id);
    /// What the runtime's news are about: a sandbox that should live.
    void look(const pool::SandboxId& id);
    void destroy(const pool::SandboxId& id);

    pool::ContainerRuntime& runtime_;
    pool::WarmPool& warm_;
    pool::ClaimMarks& marks_;
    agent::Poller& poller_;
    const SpecStore& specs_;
    Endings& endings_;
    ClaimQueue& claims_;
    Breaker& breaker_;
    WorkQueue& work_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    Layers& layers_;
    const Clock& clock_;
    std::mutex mutex_;
    std::map<pool::SandboxId, TimePoint> accepted_;  // guarded by mutex_; asked for, and when
    struct Warming {
        std::shared_ptr<Warmup> warmup;
        TimePoint since;
        TimePoint listened;  ///< its agent could be connected to
    };
    std::map<pool::SandboxId, Warming> warming_;  // guarded by mutex_
    std::atomic<std::uint64_t> epoch_{1};
    const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

}  // namespace hearth::controller
