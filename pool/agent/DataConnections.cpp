#include "pool/agent/DataConnections.h"

#include <system_error>

#include "pool/agent/Ask.h"

namespace hearth::agent {
namespace {

constexpr std::chrono::seconds kKeepIdle{30};
/// The agent takes 8; one is left for a connection that it has not yet seen closed.
constexpr unsigned kMostUsed = 7;

}  // namespace

void DataConnections::throwLate() {
    throw Error(ErrorCode::Deadline, "the workspace did not answer a file operation in time");
}

void DataConnections::setClaim(const std::string& claim_id) {
    const std::lock_guard lock(mutex_);
    claim_id_ = claim_id;
}

void DataConnections::close() {
    std::shared_ptr<Connection> idle;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        idle = std::move(idle_);
    }
    if (idle) idle->close();
}

DataConnections::Use::Use(DataConnections& owner_, bool fresh) : owner(owner_) {
    owner.takePlace();
    try {
        if (!fresh) connection = owner.takeIdle();
        reused = connection != nullptr;
        if (!connection) connection = owner.connectNew();
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

void DataConnections::takePlace() {
    std::unique_lock lock(mutex_);
    if (!place_free_.wait_until(lock, Steady::now() + kDataPatience,
                                [&] { return used_ < kMostUsed; })) {
        throwLate();
    }
    ++used_;
}

void DataConnections::leavePlace() {
    const std::lock_guard lock(mutex_);
    --used_;
    place_free_.notify_one();
}

std::shared_ptr<Connection> DataConnections::takeIdle() {
    std::shared_ptr<Connection> idle;
    {
        const std::lock_guard lock(mutex_);
        idle = std::move(idle_);
    }
    if (!idle) return nullptr;
    idle->expireAt(std::nullopt);
    if (!idle->stale()) return idle;
    idle->close();
    return nullptr;
}

std::shared_ptr<Connection> DataConnections::connectNew() {
    std::string claim;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) throw AgentLost("closed by the server");
        claim = claim_id_;
    }
    if (claim.empty()) throw AgentError("NOT_BOUND", "the sandbox is not bound", Json::object());
    Fd fd;
    try {
        fd = connect_();
    } catch (const std::system_error& e) {
        throw AgentLost(e.what());
    }
    auto connection = Connection::start(
        poller_, std::move(fd),
        [weak = weak_from_this(), control = control_](Connection::End end, const std::string& why) {
            if (const auto main = control.lock(); main && end == Connection::End::Violation) {
                main->kill(end, why);
            }
            if (const auto self = weak.lock()) self->forgetDead();
        });
    try {
        ask(*connection, encodeDataHello(epoch_, claim), Steady::now() + kDataPatience,
            [](const Json& json) {
                checkHello(json);
                return true;
            });
    } catch (const AgentLost&) {
        if (connection->end() == Connection::End::Late) throwLate();
        throw;
    }
    return connection;
}

void DataConnections::giveBack(std::shared_ptr<Connection> connection) {
    connection->expireAt(Steady::now() + kKeepIdle);
    std::shared_ptr<Connection> surplus = std::move(connection);
    {
        const std::lock_guard lock(mutex_);
        if (!closed_ && !surplus->dead()) std::swap(idle_, surplus);
    }
    if (surplus) surplus->close();
}

void DataConnections::forgetDead() {
    std::shared_ptr<Connection> dead;
    const std::lock_guard lock(mutex_);
    if (idle_ && idle_->dead()) dead = std::move(idle_);
}

}  // namespace hearth::agent
