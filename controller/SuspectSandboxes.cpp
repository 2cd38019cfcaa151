#include "controller/SuspectSandboxes.h"

#include <algorithm>

#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(500);
constexpr auto kLongestPause = std::chrono::seconds(15);
constexpr unsigned kDoublings = 5;

}  // namespace

ReconcileResult SuspectSandboxes::reconcile(const pool::SandboxId& id,
                                            std::chrono::milliseconds patience) {
    const std::optional<Silence> silence = silenceOf(id);
    if (!silence) {
        forget(id, false);
        return ReconcileResult::settled();
    }
    const std::optional<pool::SandboxInfo> info = runtime_.find(id);
    std::string end;
    std::string why;
    if (!info || !info->alive) {
        end = pool::wordsOfEnd(info);
    } else {
        try {
            ask(*info, *silence, patience);
            forget(id, true);
            return ReconcileResult::settled();
        } catch (const agent::AgentLost& e) {
            why = e.what();
            if (e.loss() == agent::Loss::Broken) end = why;
        } catch (const agent::AgentError& e) {
            why = "it refused: " + e.code();
        } catch (const std::exception& e) {
            why = e.what();
        }
        const PoolPtr pool = specs_.find(silence->pool);
        const std::chrono::milliseconds most =
            pool ? pool->spec.silence_timeout : PoolSpec{}.silence_timeout;
        if (end.empty() && most.count() > 0 && history_.clock.now() - silence->since > most) {
            end = "it did not answer for " + formatDuration(most);
        }
    }
    if (end.empty()) return later(id, *silence, why);
    forget(id, false);
    terminator_.lost(id, end);
    return ReconcileResult::settled();
}

std::optional<SuspectSandboxes::Silence> SuspectSandboxes::silenceOf(const pool::SandboxId& id) {
    const std::shared_ptr<Workspace> workspace = table_.bySandbox(id);
    const std::optional<WorkspaceTable::Expected> expected = table_.expected(id);
    Silence fresh;
    if (workspace) {
        const std::optional<TimePoint> since = workspace->silentSince();
        if (!workspace->active() || (!since && !workspace->agent()->lost())) return std::nullopt;
        fresh = {workspace->facts().pool, since.value_or(history_.clock.now())};
    } else if (expected) {
        fresh = {expected->pool, history_.clock.now()};
    } else {
        return std::nullopt;
    }
    const MutexLock lock(mutex_);
    return silent_.emplace(id, fresh).first->second;
}

void SuspectSandboxes::ask(const pool::SandboxInfo& info, const Silence& silence,
                           std::chrono::milliseconds patience) {
    if (const std::shared_ptr<Workspace> workspace = table_.bySandbox(info.id)) {
        const Awake held = pauser_.awake(workspace);
        recovery_.rejoin(workspace, patience, silence.asked);
        return;
    }
    if (recovery_.place(info, recovery_.ask(info, patience)) == Recovery::Verdict::Swept) {
        throw agent::AgentLost("it is not the expected sandbox", agent::Loss::Broken);
    }
}

ReconcileResult SuspectSandboxes::later(const pool::SandboxId& id, Silence silence,
                                        const std::string& why) {
    const auto pause = std::min<std::chrono::nanoseconds>(
        kFirstPause * (1U << std::min(silence.asked, kDoublings)), kLongestPause);
    const bool first = !silence.told;
    ++silence.asked;
    silence.told = true;
    {
        const MutexLock lock(mutex_);
        silent_[id] = silence;
        count(silence.pool);
    }
    if (first) {
        history_.log.warn("sandbox.suspect",
                          {{"sandbox", id}, {"pool", silence.pool}, {"why", why}});
        history_.events.publish({.type = "sandbox.suspect",
                                 .resource = id,
                                 .pool = silence.pool,
                                 .reason = "silent",
                                 .message = "the sandbox lives and does not answer; it is kept"});
    }
    return ReconcileResult::after(pause);
}

void SuspectSandboxes::forget(const pool::SandboxId& id, bool answered) {
    Silence silence;
    {
        const MutexLock lock(mutex_);
        const auto found = silent_.find(id);
        if (found == silent_.end()) return;
        silence = std::move(found->second);
        silent_.erase(found);
        if (silence.told) count(silence.pool);
    }
    if (!answered || !silence.told) return;
    history_.log.info("sandbox.answers",
                      {{"sandbox", id},
                       {"pool", silence.pool},
                       {"seconds", toSeconds(history_.clock.now() - silence.since)}});
    history_.events.publish({.type = "sandbox.answers",
                             .resource = id,
                             .pool = silence.pool,
                             .reason = "answered",
                             .message = "the sandbox answers again"});
}

void SuspectSandboxes::count(const std::string& pool) {
    const auto many = std::count_if(silent_.begin(), silent_.end(), [&](const auto& entry) {
        return entry.second.told && entry.second.pool == pool;
    });
    history_.metrics.suspectSandboxes(pool, static_cast<double>(many));
}

}  // namespace hearth::controller
