#include "controller/reconcile/AgentConnector.h"

#include <utility>

namespace hearth::controller {
namespace {

/// The time limit of calls without one of their own. A late call fails alone.
constexpr auto kAgentCall = std::chrono::seconds(10);

}  // namespace

AgentConnector::AgentConnector(pool::SandboxRuntime& runtime, agent::Poller& poller, Epoch& epoch,
                               WorkQueue& work, const Clock& clock)
    : runtime_(runtime), poller_(poller), epoch_(epoch), work_(work), clock_(clock) {}

std::shared_ptr<agent::AgentClient> AgentConnector::connect(const pool::SandboxId& id,
                                                            std::chrono::milliseconds timeout) {
    auto client = std::make_shared<agent::AgentClient>(
        poller_, runtime_.dialer(id), epoch_.get(), timeout,
        [line = lifeline_.line(), id](const agent::AgentLost& loss) {
            line.reach([&](AgentConnector& owner) { owner.heard(id, {loss.what(), loss.loss()}); });
        },
        &clock_);
    client->patience(kAgentCall);
    return client;
}

void AgentConnector::notice(const pool::SandboxId& id, const agent::AgentClient& agent) {
    if (!agent.lost()) return;
    heard(id, {"its connection ended while it was taken up", agent::Loss::Gone});
}

std::optional<agent::AgentLost> AgentConnector::takeLoss(const pool::SandboxId& id) {
    const MutexLock lock(mutex_);
    const auto entry = losses_.extract(id);
    if (entry.empty()) return std::nullopt;
    return agent::AgentLost(entry.mapped().why, entry.mapped().loss);
}

void AgentConnector::heard(const pool::SandboxId& id, Heard what) {
    {
        const MutexLock lock(mutex_);
        losses_.emplace(id, std::move(what));
    }
    work_.add({WorkKind::Lost, id});
}

}  // namespace hearth::controller
