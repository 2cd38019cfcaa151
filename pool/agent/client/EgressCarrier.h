#pragma once

#include <cstdint>
#include <memory>

#include "base/Mutex.h"
#include "pool/agent/client/DataConnections.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/agent/connection/Poller.h"

namespace hearth::agent {

/// Carries the tenants' connections that an agent announces where it cannot pass their descriptors.
/// All share one data connection, which is made for the first of them. They may outlive the client,
/// and end with this object. Thread-safe.
class EgressCarrier {
public:
    EgressCarrier(Poller& poller, std::shared_ptr<DataConnections> data)
        : poller_(poller), data_(std::move(data)) {}
    ~EgressCarrier();
    EgressCarrier(const EgressCarrier&) = delete;
    EgressCarrier& operator=(const EgressCarrier&) = delete;

    /// Same as EgressHandle::take().
    TakenConnection take(std::int64_t number, std::shared_ptr<void> until_over);

private:
    std::shared_ptr<AgentConnection> connection(AgentConnection::Deadline deadline);

    Poller& poller_;
    const std::shared_ptr<DataConnections> data_;
    Mutex mutex_;
    Condition dialled_;
    bool dialling_ HEARTH_GUARDED_BY(mutex_) = false;
    std::shared_ptr<AgentConnection> connection_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::agent
