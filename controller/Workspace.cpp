#include "controller/Workspace.h"

#include <algorithm>

#include "controller/RequestLimits.h"

namespace hearth::controller {

broker::NetworkPolicy networkPolicy(const WorkspaceFacts& facts) {
    broker::NetworkPolicy policy;
    policy.mode = facts.network;
    for (const std::vector<std::string>& entries : facts.allow) policy.lists.emplace_back(entries);
    return policy;
}

Workspace::Workspace(WorkspaceFacts facts, std::shared_ptr<agent::AgentClient> agent,
                     std::map<std::string, std::string> labels, const agent::Deadlines& deadlines,
                     TimePoint last_active)
    : facts_(std::move(facts)),
      agent_(std::move(agent)),
      labels_(std::move(labels)),
      expires_at_(deadlines.expires_at),
      idle_timeout_(deadlines.idle_timeout),
      last_active_(last_active) {}

bool Workspace::touch(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    last_active_ = std::max(last_active_, now);
    return true;
}

bool Workspace::workBegan(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    ++running_;
    last_active_ = std::max(last_active_, now);
    return true;
}

unsigned Workspace::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

void Workspace::workEnded(TimePoint now) {
    const std::lock_guard lock(mutex_);
    if (running_ > 0) --running_;
    last_active_ = std::max(last_active_, now);
    last_write_ = std::max(last_write_, now);
}

void Workspace::wrote(TimePoint now) {
    const std::lock_guard lock(mutex_);
    last_write_ = std::max(last_write_, now);
}

TimePoint Workspace::lastWrite(TimePoint now) const {
    const std::lock_guard lock(mutex_);
    return running_ > 0 ? now : last_write_;
}

void Workspace::deadlines(TimePoint expires_at, std::chrono::milliseconds idle_timeout) {
    const std::lock_guard lock(mutex_);
    expires_at_ = expires_at;
    idle_timeout_ = idle_timeout;
}

void Workspace::relabel(const std::map<std::string, std::optional<std::string>>& changes) {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::string> labels = labels_;
    for (const auto& [key, value] : changes) {
        if (value) {
            labels[key] = *value;
        } else {
            labels.erase(key);
        }
    }
    checkLabels(labels);
    labels_ = std::move(labels);
}

TimePoint Workspace::idleAt() const {
    if (running_ > 0 || idle_timeout_.count() == 0) return TimePoint::max();
    return last_active_ + idle_timeout_;
}

std::optional<std::string> Workspace::due(TimePoint now) const {
    const std::lock_guard lock(mutex_);
    if (ending_) return std::nullopt;
    if (expires_at_ != TimePoint{} && now >= expires_at_) return "lifetime";
    if (now >= idleAt()) return "idle";
    return std::nullopt;
}

TimePoint Workspace::nextDue() const {
    const std::lock_guard lock(mutex_);
    if (ending_) return TimePoint::max();
    return std::min(expires_at_ == TimePoint{} ? TimePoint::max() : expires_at_, idleAt());
}

bool Workspace::beginEnd(const std::string& reason, std::optional<TimePoint> only_if_due) {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    if (only_if_due) {
        const bool expired = expires_at_ != TimePoint{} && *only_if_due >= expires_at_;
        if (reason == "lifetime" ? !expired : *only_if_due < idleAt()) return false;
    }
    ending_ = true;
    return true;
}

bool Workspace::active() const {
    const std::lock_guard lock(mutex_);
    return !ending_;
}

bool Workspace::sawOom(std::uint64_t total) {
    const std::lock_guard lock(mutex_);
    if (total <= oom_kills_) return false;
    oom_kills_ = total;
    return true;
}

WorkspaceView Workspace::view() const {
    WorkspaceView view;
    view.id = facts_.id;
    view.pool = facts_.pool;
    view.sandbox_id = facts_.sandbox;
    view.network = broker::networkModeName(facts_.network);
    if (facts_.keyring) {
        for (const broker::Credential& credential : facts_.keyring->credentials()) {
            view.credentials.push_back(broker::credentialJson(credential));
        }
    }
    view.tenant = facts_.tenant;
    if (!facts_.name.empty()) view.name = facts_.name;
    view.limits = facts_.limits;
    view.created_at = formatRfc3339(facts_.created);
    // Monotonic times are shown on the wall clock of the workspace's birth.
    const auto shown = [this](TimePoint at) {
        return formatRfc3339(facts_.created + std::chrono::duration_cast<WallTime::duration>(
                                                  at - facts_.created_at));
    };
    const std::lock_guard lock(mutex_);
    view.phase = ending_ ? "Reclaiming" : "Active";
    view.labels = labels_;
    view.last_active_at = shown(last_active_);
    if (const TimePoint idle = idleAt(); idle != TimePoint::max()) {
        // It cannot end behind its latest end, however long it may be idle.
        view.idle_expires_at =
            shown(expires_at_ == TimePoint{} ? idle : std::min(idle, expires_at_));
    }
    if (expires_at_ != TimePoint{}) view.expires_at = shown(expires_at_);
    return view;
}

}  // namespace hearth::controller
