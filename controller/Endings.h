#pragma once

#include <memory>
#include <string>

#include "controller/EventLog.h"
#include "controller/Journal.h"
#include "controller/WorkQueue.h"
#include "controller/WorkspaceTable.h"
#include "controller/broker/Broker.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "pool/WarmPool.h"

namespace hearth::controller {

/// The one way a workspace ends, whoever asks: it stops answering, history learns why, and its
/// sandbox is destroyed behind the answer. Thread-safe.
class Endings {
public:
    Endings(WorkspaceTable& table, pool::WarmPool& warm, WorkQueue& work, Journal& journal,
            EventLog& events, metrics::Metrics& metrics, metrics::Log& log, broker::Broker& broker,
            const Clock& clock);

    /// Reasons as in API.md: deleted, idle, lifetime, lost, failed, drain. False if it had begun.
    bool end(const std::shared_ptr<Workspace>& workspace, const std::string& reason);
    /// Only if it is still due: the reclaimer's way.
    bool reclaim(const std::shared_ptr<Workspace>& workspace, const std::string& reason,
                 TimePoint now);
    /// A sandbox's agent has gone, broke the protocol or did not answer: it is never used again.
    void lost(const pool::SandboxId& sandbox, const std::string& why);
    /// A warm sandbox is not needed any more: shrink, age, replaced, shutdown, drain.
    bool retire(const pool::Member& member, const std::string& reason);

private:
    void finish(const std::shared_ptr<Workspace>& workspace, const std::string& reason,
                double lag_seconds);

    WorkspaceTable& table_;
    pool::WarmPool& warm_;
    WorkQueue& work_;
    Journal& journal_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    broker::Broker& broker_;
    const Clock& clock_;
};

}  // namespace hearth::controller
