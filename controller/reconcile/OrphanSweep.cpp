#include "controller/reconcile/OrphanSweep.h"

#include <algorithm>
#include <set>

namespace hearth::controller {
namespace {

constexpr auto kOrphansEvery = std::chrono::seconds(60);
constexpr auto kFirstSweepPause = std::chrono::seconds(1);
constexpr auto kLongestSweepPause = std::chrono::seconds(60);
constexpr unsigned kSweepDoublings = 6;

}  // namespace

ReconcileResult OrphanSweep::sweep() {
    // Reads the marks first: a sandbox made meanwhile is then not in the list of marks.
    const std::vector<pool::SandboxId> marked = fleet_.marks.all();
    std::vector<pool::SandboxId> keep;
    for (const pool::Member& member : fleet_.warm.all()) keep.push_back(member.id);
    std::vector<pool::Leftover> leftovers;
    try {
        leftovers = fleet_.runtime.sweep(keep);
    } catch (const std::exception& e) {
        const MutexLock lock(mutex_);
        failure_ = e.what();
        count();
        throw;
    }
    tell(leftovers);
    clearMarks(marked);
    const MutexLock lock(mutex_);
    if (leftovers.empty()) {
        again_ = 0;
        return ReconcileResult::settled();
    }
    const unsigned tried = std::min(again_++, kSweepDoublings);
    return ReconcileResult::after(
        std::min<std::chrono::nanoseconds>(kFirstSweepPause * (1U << tried), kLongestSweepPause));
}

ReconcileResult OrphanSweep::orphans() {
    std::set<pool::SandboxId> swept;
    {
        const MutexLock lock(mutex_);
        for (const auto& [id, why] : swept_) swept.insert(id);
    }
    for (const pool::SandboxInfo& info : fleet_.runtime.list()) {
        if (!fleet_.warm.find(info.id) && !swept.contains(info.id))
            work_.add({WorkKind::Sandbox, info.id});
    }
    return ReconcileResult::after(kOrphansEvery);
}

ReconcileResult OrphanSweep::watch(
    const pool::SandboxId& id, const std::function<ReconcileResult(const pool::SandboxId&)>& work) {
    try {
        const ReconcileResult result = work(id);
        const MutexLock lock(mutex_);
        if (ending_.erase(id) > 0) count();
        return result;
    } catch (const std::exception& e) {
        resists(id, e.what());
        throw;
    }
}

void OrphanSweep::resists(const pool::SandboxId& id, const std::string& why) {
    {
        const MutexLock lock(mutex_);
        const bool known = swept_.contains(id) || ending_.contains(id);
        ending_[id] = why;
        count();
        if (known) return;
    }
    tellOf(id, why);
}

void OrphanSweep::tell(const std::vector<pool::Leftover>& leftovers) {
    std::vector<pool::Leftover> fresh;
    bool over = false;
    {
        const MutexLock lock(mutex_);
        std::map<pool::SandboxId, std::string> now;
        for (const pool::Leftover& left : leftovers) {
            if (!swept_.contains(left.id) && !ending_.contains(left.id)) fresh.push_back(left);
            now[left.id] = left.why;
        }
        over = now.empty() && !swept_.empty();
        swept_ = std::move(now);
        failure_.clear();
        count();
    }
    for (const pool::Leftover& left : fresh) tellOf(left.id, left.why);
    if (!over) return;
    history_.log.info("sweep.done", {});
    history_.events.publish({.type = "sandbox.removed",
                             .resource = "sweep",
                             .reason = "removed",
                             .message = "all that could not be removed is gone"});
}

void OrphanSweep::tellOf(const pool::SandboxId& id, const std::string& why) {
    history_.log.warn("sandbox.resists", {{"sandbox", id}, {"why", why}});
    history_.events.publish(
        {.type = "sandbox.resists",
         .resource = id,
         .reason = "resists",
         .message = "what is left of the sandbox cannot be removed; it is tried "
                    "again: " +
                    why});
}

void OrphanSweep::clearMarks(const std::vector<pool::SandboxId>& before) {
    if (before.empty()) return;
    std::set<pool::SandboxId> there;
    for (const pool::SandboxInfo& info : fleet_.runtime.list()) there.insert(info.id);
    for (const pool::SandboxId& id : before) {
        if (!there.contains(id) && !fleet_.warm.find(id)) fleet_.marks.clear(id);
    }
}

std::string OrphanSweep::condition() const {
    const MutexLock lock(mutex_);
    std::map<pool::SandboxId, std::string> all = swept_;
    all.insert(ending_.begin(), ending_.end());
    if (all.empty())
        return failure_.empty() ? "" : "what is left over cannot be swept: " + failure_;
    const auto& [id, why] = *all.begin();
    std::string text = "cannot remove " + id + ": " + why;
    if (all.size() > 1) text += "; and " + std::to_string(all.size() - 1) + " more";
    return text;
}

void OrphanSweep::count() {
    std::set<pool::SandboxId> all;
    for (const auto& [id, why] : swept_) all.insert(id);
    for (const auto& [id, why] : ending_) all.insert(id);
    const std::size_t whole = all.empty() && !failure_.empty() ? 1 : 0;
    history_.metrics.sweepLeftovers(static_cast<double>(all.size() + whole));
}

}  // namespace hearth::controller
