#include "pool/agent/client/EgressCarrier.h"

#include <utility>

#include "pool/agent/client/CarriedConnection.h"

namespace hearth::agent {
namespace {

constexpr std::chrono::seconds kTakePatience{10};

}  // namespace

/// Ends the connection: an agent that does not answer would keep it for ever.
EgressCarrier::~EgressCarrier() {
    std::shared_ptr<AgentConnection> open;
    {
        const MutexLock lock(mutex_);
        open.swap(connection_);
    }
    if (open) open->kill(AgentConnection::End::Ours, "the workspace's way out has ended");
}

TakenConnection EgressCarrier::take(std::int64_t number, std::shared_ptr<void> until_over) {
    const auto deadline = Steady::now() + kTakePatience;
    auto [carried, socket] =
        CarriedConnection::make(poller_.bulk(), connection(deadline), std::move(until_over));
    carried->start(number, deadline);
    return {.socket = std::move(socket), .reset = [weak = std::weak_ptr(carried)] {
                if (const auto still = weak.lock()) still->reset();
            }};
}

/// One thread dials, the others wait for it: they must not take the places of file operations.
std::shared_ptr<AgentConnection> EgressCarrier::connection(AgentConnection::Deadline deadline) {
    {
        const MutexLock lock(mutex_);
        if (!dialled_.waitUntil(mutex_, deadline,
                                [&]() HEARTH_REQUIRES(mutex_) { return !dialling_; })) {
            DataConnections::throwLate();
        }
        if (connection_ && !connection_->dead()) return connection_;
        dialling_ = true;
    }
    const auto done = [&](const std::shared_ptr<AgentConnection>& made) {
        const MutexLock lock(mutex_);
        connection_ = made;
        dialling_ = false;
        dialled_.notifyAll();
    };
    try {
        auto made = data_->lend(poller_.bulk(), deadline);
        done(made);
        return made;
    } catch (...) {
        done(nullptr);
        throw;
    }
}

}  // namespace hearth::agent
