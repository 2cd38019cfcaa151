#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Mutex.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/agent/client/Transfers.h"
#include "pool/agent/connection/AgentConnection.h"

namespace hearth::agent {

/// The data connections to one agent: made on demand, each used by one operation at a time. One
/// idle connection is kept for a while, the others left by a burst for a moment. A broken protocol
/// on one condemns the control connection too. Thread-safe.
class DataConnections : public std::enable_shared_from_this<DataConnections> {
public:
    DataConnections(Poller& poller, AgentClient::Connect connect, std::uint64_t epoch,
                    std::weak_ptr<AgentConnection> control, std::shared_ptr<Transfers> transfers)
        : poller_(poller),
          connect_(std::move(connect)),
          epoch_(epoch),
          control_(std::move(control)),
          transfers_(std::move(transfers)) {}

    /// Sets the claim that holds the sandbox; no operation works before.
    void setClaim(const std::string& claim_id);
    /// The files that were passed over these connections.
    Transfers& transfers() { return *transfers_; }
    /// Ends the idle connection and cuts the transfers; later operations throw AgentLost.
    void close();

    using Deadline = AgentConnection::Deadline;

    /// Runs `operation(connection, begun)` on a connection of its own, obtained before the
    /// deadline. If a kept connection turns out broken, and `operation` has not set `begun` (so it
    /// has done nothing final), it runs once more on a new one. Throws the operation's exceptions,
    /// Error(Deadline) if the agent was late, AgentLost.
    template <typename Operation>
    auto run(Deadline deadline, Operation operation) {
        bool fresh = false;
        for (;;) {
            Use use(*this, fresh, deadline);
            bool begun = false;
            try {
                auto result = operation(*use.connection, begun);
                use.done = true;
                return result;
            } catch (const AgentError&) {
                use.done = !begun;
                throw;
            } catch (const AgentLost& e) {
                if (e.loss() == Loss::Late || e.loss() == Loss::Silent) throwLate();
                if (!use.reused || begun || e.loss() == Loss::Broken) throw;
                fresh = true;
            }
        }
    }

    /// Returns a new connection for the caller alone; it is closed when the last copy of the
    /// pointer goes. `poller` reads it. Throws AgentLost, AgentError, Error(Deadline).
    std::shared_ptr<AgentConnection> lend(Poller& poller, Deadline deadline);

    [[noreturn]] static void throwLate();

private:
    /// One connection in use; given back at the end if it is `done`, else closed.
    struct Use {
        Use(DataConnections& owner, bool fresh, Deadline deadline);
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        DataConnections& owner;
        std::shared_ptr<AgentConnection> connection;
        bool reused = false;
        bool done = false;
    };

    void takePlace(Deadline deadline);
    void leavePlace();
    std::shared_ptr<AgentConnection> takeIdle();
    std::shared_ptr<AgentConnection> connectNew(Poller& poller, Deadline deadline);
    std::shared_ptr<AgentConnection> tryConnect(Poller& poller, const std::string& claim,
                                                Deadline deadline);
    void giveBack(std::shared_ptr<AgentConnection> connection);
    void forgetDead();

    Poller& poller_;
    const AgentClient::Connect connect_;
    const std::uint64_t epoch_;
    const std::weak_ptr<AgentConnection> control_;
    const std::shared_ptr<Transfers> transfers_;

    Mutex mutex_;
    Condition place_free_;
    std::string claim_id_ HEARTH_GUARDED_BY(mutex_);
    // idle_ and used_ together count 7 connections at most.
    std::vector<std::shared_ptr<AgentConnection>> idle_ HEARTH_GUARDED_BY(mutex_);
    unsigned used_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool closed_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::agent
