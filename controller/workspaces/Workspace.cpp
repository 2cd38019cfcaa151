#include "controller/workspaces/Workspace.h"

#include <algorithm>

#include "base/Units.h"
#include "controller/contract/RequestLimits.h"

namespace hearth::controller {

egress::NetworkPolicy networkPolicy(const WorkspaceFacts& facts) {
    egress::NetworkPolicy policy;
    policy.mode = facts.network;
    for (const std::vector<std::string>& entries : facts.allow) policy.lists.emplace_back(entries);
    return policy;
}

namespace {

bool isLoss(const std::optional<EndReason>& end) {
    return end == EndReason::Lost || end == EndReason::Oom;
}

/// Returns the end of its lifetime as its agent reports it, but never later than its facts allow: a
/// tenant who has taken over the agent could report none. (After a restart of the server, the
/// moment of the bind is the agent's word, too.)
TimePoint believedEnd(const WorkspaceFacts& facts, TimePoint reported) {
    const bool bounded =
        facts.max_lifetime.count() > 0 && facts.max_lifetime < TimePoint::max() - facts.created_at;
    if (!bounded) return reported;
    const TimePoint latest = facts.created_at + facts.max_lifetime;
    return reported == TimePoint{} ? latest : std::min(reported, latest);
}

}  // namespace

Workspace::Workspace(WorkspaceFacts facts, std::shared_ptr<agent::AgentClient> agent,
                     std::map<std::string, std::string> labels, const agent::Deadlines& deadlines,
                     TimePoint last_active)
    : facts_(std::move(facts)),
      agent_(std::move(agent)),
      labels_(std::move(labels)),
      expires_at_(believedEnd(facts_, deadlines.expires_at)),
      idle_timeout_(deadlines.idle_timeout),
      last_active_(last_active) {}

std::shared_ptr<agent::AgentClient> Workspace::agent() const {
    const MutexLock lock(mutex_);
    return agent_;
}

bool Workspace::fallSilent(TimePoint now) {
    const MutexLock lock(mutex_);
    if (end_ || silent_since_) return false;
    silent_since_ = now;
    return true;
}

std::optional<TimePoint> Workspace::silentSince() const {
    const MutexLock lock(mutex_);
    return silent_since_;
}

TimePoint Workspace::answeredAt() const {
    const MutexLock lock(mutex_);
    return answered_at_;
}

void Workspace::answers(TimePoint now, std::shared_ptr<agent::AgentClient> agent) {
    std::vector<std::weak_ptr<Detached>> detached;
    {
        const MutexLock lock(mutex_);
        silent_since_.reset();
        answered_at_ = now;
        if (!agent) return;
        agent_.swap(agent);  // the old one is destroyed outside the lock
        detached.swap(detached_);
    }
    const std::shared_ptr<agent::AgentClient> current = this->agent();
    for (const std::weak_ptr<Detached>& each : detached) {
        if (const std::shared_ptr<Detached> what = each.lock()) what->rejoin(current);
    }
}

bool Workspace::detach(const std::shared_ptr<Detached>& what) {
    const MutexLock lock(mutex_);
    if (end_) return false;
    detached_.push_back(what);
    return true;
}

void Workspace::giveUpDetached() {
    std::vector<std::weak_ptr<Detached>> detached;
    bool lost = false;
    {
        const MutexLock lock(mutex_);
        detached.swap(detached_);
        lost = isLoss(end_);
    }
    for (const std::weak_ptr<Detached>& each : detached) {
        if (const std::shared_ptr<Detached> what = each.lock()) what->giveUp(lost);
    }
}

bool Workspace::endedLost() const {
    const MutexLock lock(mutex_);
    return isLoss(end_);
}

std::optional<EndReason> Workspace::endReason() const {
    const MutexLock lock(mutex_);
    return end_;
}

bool Workspace::touch(TimePoint now) {
    const MutexLock lock(mutex_);
    if (end_) return false;
    last_active_ = std::max(last_active_, now);
    return true;
}

bool Workspace::workBegan(Activity what, TimePoint now) {
    const MutexLock lock(mutex_);
    if (end_) return false;
    ++countOf(what);
    last_active_ = std::max(last_active_, now);
    return true;
}

unsigned Workspace::running() const {
    const MutexLock lock(mutex_);
    return executions_ + transfers_;
}

void Workspace::workEnded(Activity what, TimePoint now) {
    const MutexLock lock(mutex_);
    if (countOf(what) > 0) --countOf(what);
    last_active_ = std::max(last_active_, now);
    last_write_ = std::max(last_write_, now);
}

void Workspace::attended(TimePoint now) {
    const MutexLock lock(mutex_);
    ++attended_;
    last_active_ = std::max(last_active_, now);
}

void Workspace::left(TimePoint now) {
    const MutexLock lock(mutex_);
    if (attended_ > 0) --attended_;
    last_active_ = std::max(last_active_, now);
}

void Workspace::wrote(TimePoint now) {
    const MutexLock lock(mutex_);
    last_write_ = std::max(last_write_, now);
}

TimePoint Workspace::lastWrite(TimePoint now) const {
    const MutexLock lock(mutex_);
    return executions_ + transfers_ > 0 ? now : last_write_;
}

void Workspace::deadlines(TimePoint expires_at, std::chrono::milliseconds idle_timeout) {
    const MutexLock lock(mutex_);
    expires_at_ = believedEnd(facts_, expires_at);
    idle_timeout_ = idle_timeout;
}

void Workspace::relabel(const std::map<std::string, std::optional<std::string>>& changes) {
    const MutexLock lock(mutex_);
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

bool Workspace::busy() const {
    if (transfers_ > 0) return true;
    return executions_ > 0 && (facts_.count_running_work || attended_ > 0);
}

TimePoint Workspace::idleAt() const {
    if (busy() || idle_timeout_.count() == 0 || paused()) return TimePoint::max();
    return last_active_ + idle_timeout_;
}

TimePoint Workspace::idleDue() const {
    return results_pending_ > 0 ? TimePoint::max() : idleAt();
}

void Workspace::resultPending() {
    const MutexLock lock(mutex_);
    ++results_pending_;
}

void Workspace::resultKept() {
    {
        const MutexLock lock(mutex_);
        if (results_pending_ > 0) --results_pending_;
    }
    results_kept_.notifyAll();
}

bool Workspace::awaitResults(std::chrono::milliseconds timeout) {
    const MutexLock lock(mutex_);
    return results_kept_.waitFor(
        mutex_, timeout, [this]() HEARTH_REQUIRES(mutex_) { return results_pending_ == 0; });
}

std::optional<EndReason> Workspace::due(TimePoint now) const {
    const MutexLock lock(mutex_);
    if (end_) return std::nullopt;
    if (expires_at_ != TimePoint{} && now >= expires_at_) return EndReason::Lifetime;
    if (now >= idleDue()) return EndReason::Idle;
    return std::nullopt;
}

std::optional<NearEnd> Workspace::warning(TimePoint now) {
    const MutexLock lock(mutex_);
    if (end_ || facts_.one_shot) return std::nullopt;
    const TimePoint idle = facts_.pause_when_idle ? TimePoint::max() : idleDue();
    const TimePoint latest = expires_at_ == TimePoint{} ? TimePoint::max() : expires_at_;
    const TimePoint at = std::min(idle, latest);
    if (at == TimePoint::max() || at == warned_of_ || now >= at) return std::nullopt;
    const std::chrono::nanoseconds had = idle < latest ? idle_timeout_ : at - facts_.created_at;
    if (now < at - std::min<std::chrono::nanoseconds>(facts_.warn_before, had / 2)) {
        return std::nullopt;
    }
    warned_of_ = at;
    return NearEnd{idle < latest ? EndReason::Idle : EndReason::Lifetime, at};
}

TimePoint Workspace::nextDue() const {
    const MutexLock lock(mutex_);
    if (end_) return TimePoint::max();
    return std::min(expires_at_ == TimePoint{} ? TimePoint::max() : expires_at_, idleDue());
}

bool Workspace::beginEnd(EndReason reason, std::optional<TimePoint> only_if_due,
                         pool::ClaimMarks* marks) {
    const MutexLock lock(mutex_);
    if (end_) return false;
    if (only_if_due) {
        const bool expired = expires_at_ != TimePoint{} && *only_if_due >= expires_at_;
        if (reason == EndReason::Lifetime ? !expired : *only_if_due < idleDue()) return false;
    }
    if (marks != nullptr) marks->end(facts_.sandbox, static_cast<std::uint8_t>(reason));
    end_ = reason;
    return true;
}

bool Workspace::active() const {
    const MutexLock lock(mutex_);
    return !end_;
}

bool Workspace::sawOom(std::uint64_t total) {
    const MutexLock lock(mutex_);
    if (total <= oom_kills_) return false;
    oom_kills_ = total;
    return true;
}

void Workspace::lostWith(std::uint64_t total) {
    if (sawOom(total)) ranOutOfMemory();
}

void Workspace::ranOutOfMemory() {
    const MutexLock lock(mutex_);
    lost_to_memory_ = true;
}

bool Workspace::lostToMemory() const {
    const MutexLock lock(mutex_);
    return lost_to_memory_;
}

WorkspaceView Workspace::view() const {
    WorkspaceView view;
    view.id = facts_.id;
    view.pool = facts_.pool;
    view.sandbox_id = facts_.sandbox;
    view.network = facts_.network;
    if (facts_.keyring) {
        for (const egress::Credential& credential : facts_.keyring->credentials()) {
            view.credentials.push_back(egress::credentialJson(credential));
        }
    }
    view.tenant = facts_.tenant;
    if (!facts_.name.empty()) view.name = facts_.name;
    view.limits = facts_.limits;
    view.gpus = facts_.gpus;
    view.one_shot = facts_.one_shot;
    view.created_at = formatRfc3339(facts_.created);
    // Monotonic times are shown relative to the wall time of the workspace's creation.
    const auto shown = [this](TimePoint at) {
        // An agent's time may be any: a sum of nanoseconds could overflow.
        const auto since = std::chrono::floor<std::chrono::milliseconds>(at - facts_.created_at);
        return formatUnixMillis(toUnixMillis(facts_.created) + since.count());
    };
    const MutexLock lock(mutex_);
    view.phase = end_       ? WorkspacePhase::Reclaiming
                 : paused() ? WorkspacePhase::Paused
                            : WorkspacePhase::Active;
    view.labels = labels_;
    view.last_active_at = shown(last_active_);
    if (const TimePoint idle = idleAt(); idle != TimePoint::max() && !facts_.pause_when_idle) {
        // It cannot end after its latest end, however long it may be idle.
        view.idle_expires_at =
            shown(expires_at_ == TimePoint{} ? idle : std::min(idle, expires_at_));
    }
    if (expires_at_ != TimePoint{}) view.expires_at = shown(expires_at_);
    return view;
}

}  // namespace hearth::controller
