#include "controller/reconcile/WarmReconnector.h"

#include <exception>
#include <optional>
#include <string>

namespace hearth::controller {
namespace {

constexpr auto kReconnectWithin = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(500);
constexpr auto kHello = std::chrono::seconds(2);

}  // namespace

WarmReconnector::WarmReconnector(const pool::Fleet& fleet, const Supply& supply,
                                 AgentConnector& agents, WorkspaceTerminator& terminator,
                                 const History& history)
    : fleet_(fleet), supply_(supply), agents_(agents), terminator_(terminator), history_(history) {}

bool WarmReconnector::begin(const pool::SandboxId& id, const agent::AgentLost& loss) {
    if (!fleet_.runtime.inCluster() || loss.loss() == agent::Loss::Broken) return false;
    const std::optional<pool::Member> member = fleet_.warm.find(id);
    if (!member || member->phase != pool::Phase::Ready) return false;
    const MutexLock lock(mutex_);
    if (broken_.emplace(id, history_.clock.now()).second) {
        history_.log.warn("sandbox.disconnected",
                          {{"sandbox", id}, {"pool", member->pool}, {"why", loss.what()}});
    }
    return true;
}

ReconcileResult WarmReconnector::proceed(const pool::SandboxId& id) {
    TimePoint since;
    {
        const MutexLock lock(mutex_);
        const auto found = broken_.find(id);
        if (found == broken_.end()) return ReconcileResult::settled();
        since = found->second;
    }
    const std::optional<pool::Member> member = fleet_.warm.find(id);
    if (!member || member->phase != pool::Phase::Ready) {
        forget(id);
        return ReconcileResult::settled();
    }
    const std::optional<pool::SandboxInfo> info = fleet_.runtime.find(id);
    std::string end;
    if (!info || !info->alive) {
        end = pool::wordsOfEnd(info);
    } else {
        try {
            reconnect(*member);
            forget(id);
            history_.log.info("sandbox.reconnected", {{"sandbox", id}, {"pool", member->pool}});
            supply_.line.offer(member->pool);
            return ReconcileResult::settled();
        } catch (const agent::AgentLost& e) {
            if (e.loss() == agent::Loss::Broken ||
                history_.clock.now() - since > kReconnectWithin) {
                end = e.what();
            }
        } catch (const std::exception& e) {
            if (history_.clock.now() - since > kReconnectWithin) end = e.what();
        }
    }
    if (end.empty()) return ReconcileResult::after(kPause);
    forget(id);
    terminator_.lost(id, end);
    return ReconcileResult::settled();
}

void WarmReconnector::reconnect(const pool::Member& member) {
    const std::shared_ptr<agent::AgentClient> agent = agents_.connect(member.id, kHello);
    if (agent->hello().binding) {
        throw agent::AgentLost("it says that it is bound", agent::Loss::Broken);
    }
    if (fleet_.warm.reconnected(member.id, agent)) agents_.notice(member.id, *agent);
}

void WarmReconnector::forget(const pool::SandboxId& id) {
    const MutexLock lock(mutex_);
    broken_.erase(id);
}

}  // namespace hearth::controller
