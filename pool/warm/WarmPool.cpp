#include "pool/warm/WarmPool.h"

#include <algorithm>

namespace hearth::pool {
namespace {

std::size_t& counter(PoolCounts& counts, Phase phase) {
    switch (phase) {
        case Phase::Creating:
            return counts.creating;
        case Phase::Warming:
            return counts.warming;
        case Phase::Ready:
            return counts.ready;
        case Phase::Claimed:
            return counts.claimed;
        case Phase::Draining:
            return counts.draining;
        case Phase::Failed:
            return counts.failed;
    }
    return counts.failed;
}

}  // namespace

void WarmPool::add(Member member) {
    member.phase = Phase::Creating;
    adopt(std::move(member));
}

bool WarmPool::addWithin(Member member, std::uint64_t most) {
    member.phase = Phase::Creating;
    const MutexLock lock(mutex_);
    if (member.disk_bytes > most || promised_disk_ > most - member.disk_bytes) return false;
    return place(std::move(member));
}

std::uint64_t WarmPool::promisedDisk() const {
    const MutexLock lock(mutex_);
    return promised_disk_;
}

bool WarmPool::adopt(Member member) {
    const MutexLock lock(mutex_);
    return place(std::move(member));
}

bool WarmPool::place(Member member) {
    auto owned = std::make_unique<Member>(std::move(member));
    Member& placed = *owned;
    const auto before = members_.find(placed.id);
    if (before != members_.end() && before->second->unasked && !placed.unasked &&
        before->second->phase == Phase::Claimed) {
        countOut(*before->second);
        promised_disk_ -= before->second->disk_bytes;
        members_.erase(before);
    }
    if (!members_.emplace(placed.id, std::move(owned)).second) return false;
    promised_disk_ += placed.disk_bytes;
    countIn(placed);
    hear(placed);
    if (placed.phase == Phase::Ready) enlist(placed);
    return true;
}

bool WarmPool::warming(const SandboxId& id) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || member->phase != Phase::Creating) return false;
    move(*member, Phase::Warming);
    return true;
}

bool WarmPool::ready(const SandboxId& id, std::shared_ptr<agent::AgentClient> agent, WallTime at,
                     const StartTimes& took) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || member->phase != Phase::Warming) return false;
    member->agent = std::move(agent);
    hear(*member);
    member->ready = at;
    member->start = took;
    move(*member, Phase::Ready);
    enlist(*member);
    return true;
}

std::optional<Member> WarmPool::claim(const std::string& pool, const std::string& workspace,
                                      const std::string& tenant) {
    const MutexLock lock(mutex_);
    const auto shelf = shelves_.find(pool);
    if (shelf == shelves_.end()) return std::nullopt;
    std::deque<Member*>& ready = shelf->second.ready;
    const auto first = std::find_if(ready.begin(), ready.end(), [](const Member* one) {
        return !one->agent || !one->agent->lost();
    });
    if (first == ready.end()) return std::nullopt;
    Member& member = **first;
    ready.erase(first);
    member.workspace = workspace;
    member.tenant = tenant;
    move(member, Phase::Claimed);
    return member;
}

bool WarmPool::giveBack(const SandboxId& id) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || member->phase != Phase::Claimed) return false;
    move(*member, Phase::Ready);  // first, because the counts need its tenant
    member->workspace.clear();
    member->tenant.clear();
    shelves_[member->pool].ready.push_front(member);
    return true;
}

bool WarmPool::retire(const SandboxId& id) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || !isWarm(member->phase)) return false;
    unlist(*member);
    move(*member, Phase::Draining);
    return true;
}

bool WarmPool::reconnected(const SandboxId& id, std::shared_ptr<agent::AgentClient> agent) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || (member->phase != Phase::Claimed && member->phase != Phase::Ready)) {
        return false;
    }
    member->agent.swap(agent);  // the old agent ends outside the lock
    return true;
}

bool WarmPool::drain(const SandboxId& id) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || member->phase == Phase::Draining) return false;
    unlist(*member);
    move(*member, Phase::Draining);
    return true;
}

bool WarmPool::fail(const SandboxId& id) {
    const MutexLock lock(mutex_);
    Member* member = locate(id);
    if (member == nullptr || member->phase == Phase::Draining || member->phase == Phase::Failed) {
        return false;
    }
    unlist(*member);
    move(*member, Phase::Failed);
    return true;
}

void WarmPool::remove(const SandboxId& id) {
    std::shared_ptr<agent::AgentClient> last;  // ends after the unlock
    const MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    unlist(*found->second);
    countOut(*found->second);
    promised_disk_ -= found->second->disk_bytes;
    last = std::move(found->second->agent);
    const auto shelf = shelves_.find(found->second->pool);
    if (last) --shelf->second.agents;
    if (shelf->second.counts.total() == 0) shelves_.erase(shelf);
    members_.erase(found);
    ++removals_;
    removed_.notifyAll();
}

std::uint64_t WarmPool::removals() const {
    const MutexLock lock(mutex_);
    return removals_;
}

void WarmPool::awaitRemoval(std::uint64_t seen, std::chrono::milliseconds most) const {
    const MutexLock lock(mutex_);
    removed_.waitFor(mutex_, most, [&]() HEARTH_REQUIRES(mutex_) { return removals_ > seen; });
}

std::optional<Member> WarmPool::find(const SandboxId& id) const {
    const MutexLock lock(mutex_);
    const auto found = members_.find(id);
    if (found == members_.end()) return std::nullopt;
    return *found->second;
}

std::vector<Member> WarmPool::members(const std::string& pool) const {
    std::vector<Member> out;
    const MutexLock lock(mutex_);
    for (const auto& [id, member] : members_) {
        if (member->pool == pool) out.push_back(*member);
    }
    return out;
}

std::vector<Member> WarmPool::all() const {
    std::vector<Member> out;
    const MutexLock lock(mutex_);
    out.reserve(members_.size());
    for (const auto& [id, member] : members_) out.push_back(*member);
    return out;
}

PoolCounts WarmPool::counts(const std::string& pool) const {
    const MutexLock lock(mutex_);
    const auto found = shelves_.find(pool);
    return found == shelves_.end() ? PoolCounts{} : found->second.counts;
}

std::vector<std::size_t> WarmPool::claimedBy(const std::string& pool,
                                             const std::vector<std::string>& tenants) const {
    std::vector<std::size_t> counts(tenants.size());
    const MutexLock lock(mutex_);
    const auto shelf = shelves_.find(pool);
    if (shelf == shelves_.end()) return counts;
    const std::map<std::string, std::size_t>& claimed = shelf->second.claimed;
    std::transform(tenants.begin(), tenants.end(), counts.begin(), [&](const std::string& tenant) {
        const auto found = claimed.find(tenant);
        return found == claimed.end() ? 0 : found->second;
    });
    return counts;
}

WarmStock WarmPool::stock(const std::string& pool, const std::string& template_hash) const {
    WarmStock stock;
    const MutexLock lock(mutex_);
    const auto shelf = shelves_.find(pool);
    if (shelf == shelves_.end()) return stock;
    stock.ready = shelf->second.counts.ready;
    if (!shelf->second.ready.empty()) stock.oldest = shelf->second.ready.front()->created_at;
    const auto made = shelf->second.made.find(template_hash);
    if (made == shelf->second.made.end()) return stock;
    stock.fresh_ready = made->second.ready;
    stock.fresh = made->second.creating + made->second.warming + made->second.ready;
    return stock;
}

std::optional<std::vector<std::string>> WarmPool::languages(const std::string& pool) const {
    const MutexLock lock(mutex_);
    const auto shelf = shelves_.find(pool);
    if (shelf == shelves_.end() || shelf->second.agents == 0) return std::nullopt;
    return shelf->second.languages;
}

void WarmPool::hear(const Member& member) {
    if (!member.agent) return;
    Shelf& shelf = shelves_[member.pool];
    ++shelf.agents;
    shelf.languages = member.agent->hello().languages;
}

Member* WarmPool::locate(const SandboxId& id) {
    const auto found = members_.find(id);
    return found == members_.end() ? nullptr : found->second.get();
}

void WarmPool::enlist(Member& member) {
    shelves_[member.pool].ready.push_back(&member);
}

void WarmPool::unlist(const Member& member) {
    if (member.phase != Phase::Ready) return;
    std::deque<Member*>& list = shelves_[member.pool].ready;
    list.erase(std::remove(list.begin(), list.end(), &member), list.end());
}

void WarmPool::countIn(const Member& member) {
    Shelf& shelf = shelves_[member.pool];
    ++counter(shelf.counts, member.phase);
    ++counter(shelf.made[member.template_hash], member.phase);
    if (member.phase == Phase::Claimed) ++shelf.claimed[member.tenant];
}

void WarmPool::countOut(const Member& member) {
    Shelf& shelf = shelves_[member.pool];
    --counter(shelf.counts, member.phase);
    PoolCounts& made = shelf.made[member.template_hash];
    --counter(made, member.phase);
    if (made.total() == 0) shelf.made.erase(member.template_hash);
    if (member.phase != Phase::Claimed) return;
    const auto claimed = shelf.claimed.find(member.tenant);
    if (--claimed->second == 0) shelf.claimed.erase(claimed);
}

void WarmPool::move(Member& member, Phase phase) {
    countOut(member);
    member.phase = phase;
    countIn(member);
}

}  // namespace hearth::pool
