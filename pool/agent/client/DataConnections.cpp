#include "pool/agent/client/DataConnections.h"

#include "pool/agent/connection/Ask.h"

namespace hearth::agent {
namespace {

constexpr std::chrono::seconds kKeepIdle{30};
/// For idle connections beyond the first: long enough for the next operation of a burst.
constexpr std::chrono::seconds kKeepSurplus{1};
/// The pause between attempts while the agent has not yet seen that other connections closed.
constexpr std::chrono::milliseconds kRetry{5};
/// The agent takes 8; one is left for a connection that it has not yet seen closed.
constexpr unsigned kMostUsed = 7;

}  // namespace

void DataConnections::throwLate() {
    throw Error(ErrorCode::Deadline, "the workspace did not answer a file operation in time");
}

void DataConnections::setClaim(const std::string& claim_id) {
    const MutexLock lock(mutex_);
    claim_id_ = claim_id;
}

void DataConnections::close() {
    transfers_->cut();
    std::vector<std::shared_ptr<AgentConnection>> idle;
    {
        const MutexLock lock(mutex_);
        closed_ = true;
        idle = std::move(idle_);
        idle_.clear();
    }
    for (const auto& connection : idle) connection->close();
}

DataConnections::Use::Use(DataConnections& owner_, bool fresh, Deadline deadline) : owner(owner_) {
    owner.takePlace(deadline);
    try {
        if (!fresh) connection = owner.takeIdle();
        reused = connection != nullptr;
        if (!connection) connection = owner.connectNew(owner.poller_, deadline);
    } catch (...) {
        owner.leavePlace();
        throw;
    }
}

DataConnections::Use::~Use() {
    if (done && !connection->dead()) {
        owner.giveBack(std::move(connection));
    } else {
        connection->close();
    }
    owner.leavePlace();
}

std::shared_ptr<AgentConnection> DataConnections::lend(Poller& poller, Deadline deadline) {
    struct Loan {
        explicit Loan(std::shared_ptr<DataConnections> connections)
            : owner(std::move(connections)) {}
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        ~Loan() {
            if (connection) connection->kill(AgentConnection::End::Ours, "given back");
            owner->leavePlace();
        }
        const std::shared_ptr<DataConnections> owner;
        std::shared_ptr<AgentConnection> connection;
    };
    takePlace(deadline);
    const auto loan = std::make_shared<Loan>(shared_from_this());
    loan->connection = connectNew(poller, deadline);
    return {loan, loan->connection.get()};
}

void DataConnections::takePlace(Deadline deadline) {
    const MutexLock lock(mutex_);
    if (!place_free_.waitUntil(mutex_, deadline,
                               [&]() HEARTH_REQUIRES(mutex_) { return used_ < kMostUsed; })) {
        throwLate();
    }
    ++used_;
}

void DataConnections::leavePlace() {
    const MutexLock lock(mutex_);
    --used_;
    place_free_.notifyOne();
}

std::shared_ptr<AgentConnection> DataConnections::takeIdle() {
    for (;;) {
        std::shared_ptr<AgentConnection> idle;
        {
            const MutexLock lock(mutex_);
            if (idle_.empty()) return nullptr;
            idle = std::move(idle_.back());
            idle_.pop_back();
        }
        idle->expireAt(std::nullopt);
        if (!idle->stale()) return idle;
        idle->close();
    }
}

std::shared_ptr<AgentConnection> DataConnections::connectNew(Poller& poller, Deadline deadline) {
    for (;;) {
        std::string claim;
        {
            const MutexLock lock(mutex_);
            if (closed_) throw AgentLost("closed by the server");
            claim = claim_id_;
        }
        if (claim.empty())
            throw AgentError("NOT_BOUND", "the sandbox is not bound", Json::object());
        try {
            return tryConnect(poller, claim, deadline);
        } catch (const AgentError& e) {
            if (e.code() != "TOO_MANY" || Steady::now() >= deadline) throw;
        }
        const MutexLock lock(mutex_);
        place_free_.waitFor(mutex_, kRetry);
    }
}

std::shared_ptr<AgentConnection> DataConnections::tryConnect(Poller& poller,
                                                             const std::string& claim,
                                                             Deadline deadline) {
    auto connection = AgentConnection::start(
        poller, dial(connect_, secure::Purpose::Data),
        [weak = weak_from_this(), control = control_](AgentConnection::End end,
                                                      const std::string& why) {
            if (const auto main = control.lock(); main && end == AgentConnection::End::Violation) {
                main->kill(end, why);
            }
            if (const auto self = weak.lock()) self->forgetDead();
        });
    try {
        ask(*connection, encodeDataHello(epoch_, claim), deadline, [](const Json& json) {
            checkHello(json);
            return true;
        });
    } catch (const AgentLost& e) {
        if (e.loss() == Loss::Late || e.loss() == Loss::Silent) throwLate();
        throw;
    }
    return connection;
}

void DataConnections::giveBack(std::shared_ptr<AgentConnection> connection) {
    {
        const MutexLock lock(mutex_);
        if (!closed_ && !connection->dead()) {
            connection->expireAt(Steady::now() + (idle_.empty() ? kKeepIdle : kKeepSurplus));
            idle_.push_back(std::move(connection));
            return;
        }
    }
    connection->close();
}

void DataConnections::forgetDead() {
    std::vector<std::shared_ptr<AgentConnection>> dead;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    for (auto& connection : idle_) {
        if (connection->dead()) dead.push_back(std::move(connection));
    }
    std::erase(idle_, nullptr);
}

}  // namespace hearth::agent
