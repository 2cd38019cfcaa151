#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "base/Clock.h"
#include "base/Lifeline.h"
#include "base/Mutex.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/Epoch.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Connects to the agents of sandboxes, and hears when one is lost: as work of kind "lost", because
/// a thread that reads agents must wait for nothing. Thread-safe.
class AgentConnector {
public:
    AgentConnector(pool::SandboxRuntime& runtime, agent::Poller& poller, Epoch& epoch,
                   WorkQueue& work, const Clock& clock);

    /// A control connection that reports its loss. `timeout` is the hello's. Throws
    /// agent::AgentLost, agent::AgentError.
    std::shared_ptr<agent::AgentClient> connect(const pool::SandboxId& id,
                                                std::chrono::milliseconds timeout);
    /// For an agent that may have been lost before its sandbox was a member: nobody has heard it.
    void notice(const pool::SandboxId& id, const agent::AgentClient& agent);
    /// The loss that a key "lost" is about, once.
    std::optional<agent::AgentLost> takeLoss(const pool::SandboxId& id);
    /// The epoch that every hello carries.
    Epoch& epoch() { return epoch_; }

private:
    /// Not the exception itself: copies share its text, and they go to other threads.
    struct Heard {
        std::string why;
        agent::Loss loss;
    };

    void heard(const pool::SandboxId& id, Heard what);

    pool::SandboxRuntime& runtime_;
    agent::Poller& poller_;
    Epoch& epoch_;
    WorkQueue& work_;
    const Clock& clock_;
    Mutex mutex_;
    std::map<pool::SandboxId, Heard> losses_ HEARTH_GUARDED_BY(mutex_);
    /// Clients may report losses after this has gone, on the thread that reads.
    const Lifeline<AgentConnector> lifeline_{*this};
};

}  // namespace hearth::controller
