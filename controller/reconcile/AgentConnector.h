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

/// Connects to the agents of sandboxes, and reports their loss as work of kind "lost", because a
/// thread that reads agents must never wait. Thread-safe.
class AgentConnector {
public:
    AgentConnector(pool::SandboxRuntime& runtime, agent::Poller& poller, Epoch& epoch,
                   WorkQueue& work, const Clock& clock);

    /// Makes a control connection that reports its loss. `timeout` is for the hello. Throws
    /// agent::AgentLost, agent::AgentError.
    std::shared_ptr<agent::AgentClient> connect(const pool::SandboxId& id,
                                                std::chrono::milliseconds timeout);
    /// Reports an agent that may have been lost before its sandbox was a member, unnoticed.
    void notice(const pool::SandboxId& id, const agent::AgentClient& agent);
    /// Returns the loss that a key "lost" is about, once.
    std::optional<agent::AgentLost> takeLoss(const pool::SandboxId& id);
    /// The epoch that every hello carries.
    Epoch& epoch() { return epoch_; }

private:
    /// A copy of the loss, not the exception: exceptions share their text between threads.
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
    /// Clients may report losses after this object is gone, on the thread that reads.
    const Lifeline<AgentConnector> lifeline_{*this};
};

}  // namespace hearth::controller
