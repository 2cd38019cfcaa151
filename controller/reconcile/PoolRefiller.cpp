#include "controller/reconcile/PoolRefiller.h"

#include <algorithm>

#include "base/Ids.h"

namespace hearth::controller {
namespace {

using pool::Member;
using pool::Phase;

constexpr auto kRoomAgain = std::chrono::milliseconds(200);
/// How often to look for disk room, with a waiting claim and without: the end of any pool's sandbox
/// frees room.
constexpr auto kDiskAgain = std::chrono::milliseconds(500);
constexpr auto kDiskLook = std::chrono::seconds(5);

}  // namespace

PoolRefiller::PoolRefiller(const SpecStore& specs, const Supply& supply,
                           WorkspaceTerminator& terminator, const DiskBudget& disk,
                           GpuArbiter& gpus, const History& history)
    : specs_(specs),
      supply_(supply),
      terminator_(terminator),
      disk_(disk),
      gpus_(gpus),
      history_(history) {}

std::optional<std::chrono::nanoseconds> PoolRefiller::fill(const Pool& pool,
                                                           const std::string& hash,
                                                           std::size_t missing) {
    if (missing == 0) {
        supply_.breaker.room(pool.name, "");
        supply_.breaker.gpus(pool.name, "");
        return std::nullopt;
    }
    const CircuitBreaker::State breaker = supply_.breaker.state(pool.name);
    const TimePoint now = history_.clock.now();
    if (now < breaker.retry_at) return breaker.retry_at - now;
    // A pool that has just failed is tried with one sandbox only.
    const std::size_t trust = breaker.failures > 0 ? 1 : missing;
    const std::size_t count = std::min({missing, pace(pool), trust});
    if (pool.on_demand.empty()) return fillRoom(pool, hash, count);
    const MutexLock lock(on_demand_mutex_);
    return fillRoom(pool, hash, count);
}

std::size_t PoolRefiller::pace(const Pool& pool) const {
    const pool::PoolCounts counts = supply_.warm.counts(pool.name);
    const std::size_t starting = counts.creating + counts.warming;
    return pool.spec.parallel_creates > starting ? pool.spec.parallel_creates - starting : 0;
}

std::optional<std::chrono::nanoseconds> PoolRefiller::fillRoom(const Pool& pool,
                                                               const std::string& hash,
                                                               std::size_t count) {
    const std::size_t room = roomFor(pool);
    if (!create(pool, hash, std::min(count, room))) {
        return supply_.line.waiting(pool.name) > 0 ? kDiskAgain : kDiskLook;
    }
    // Freed room causes no event for waiting claims, so look again.
    if (room == 0 && !pool.on_demand.empty()) return kRoomAgain;
    return std::nullopt;
}

std::size_t PoolRefiller::roomFor(const Pool& pool) {
    std::size_t members = supply_.warm.counts(pool.name).total();
    const std::size_t most = pool.spec.max_members;
    if (pool.on_demand.empty()) return most > members ? most - members : 0;
    std::vector<Member> spare;
    for (const PoolPtr& other : specs_.all()) {
        if (other->on_demand.empty() || other->name == pool.name) continue;
        members += supply_.warm.counts(other->name).total();
        if (supply_.line.waiting(other->name) > 0) continue;
        for (const Member& member : supply_.warm.members(other->name)) {
            if (member.phase == Phase::Ready) spare.push_back(member);
        }
    }
    if (members < most) return most - members;
    for (const Member& member : spare) {
        if (terminator_.retire(member, EndReason::Shrink)) break;
    }
    return 0;
}

bool PoolRefiller::create(const Pool& pool, const std::string& hash, std::size_t count) {
    if (pool.spec.gpu.count == 0) supply_.breaker.gpus(pool.name, "");
    for (std::size_t i = 0; i < count; ++i) {
        Member member = newMember(pool, hash);
        if (pool.spec.gpu.count > 0) {
            member.gpus = gpus_.lease(pool, hash, member.id).uuids;
            if (member.gpus.empty()) return false;
        }
        if (!admit(std::move(member))) return false;
    }
    return true;
}

Member PoolRefiller::newMember(const Pool& pool, const std::string& hash) const {
    Member member;
    member.id = newId("sb_");
    member.pool = pool.name;
    member.template_hash = hash;
    member.generation = pool.generation;
    member.image = pool.spec.image;
    member.limits = pool.spec.limits;
    if (pool.spec.storage == pool::Storage::Disk) {
        member.disk_bytes = pool.spec.limits.workspace_bytes;
    }
    member.created = history_.clock.wall();
    member.created_at = history_.clock.now();
    return member;
}

bool PoolRefiller::admit(Member member) {
    const std::string id = member.id;
    const std::string pool = member.pool;
    const std::uint64_t bytes = member.disk_bytes;
    const DiskBudget::Room room = disk_.roomFor(bytes, supply_.warm.promisedDisk());
    if (!room.refusal.empty() || !supply_.warm.addWithin(std::move(member), room.most)) {
        supply_.gpus.drop(id);
        // Another pool may have taken the room since it was computed.
        supply_.breaker.room(pool, room.refusal.empty()
                                       ? disk_.roomFor(bytes, supply_.warm.promisedDisk()).refusal
                                       : room.refusal);
        return false;
    }
    supply_.breaker.room(pool, "");
    history_.log.debug("sandbox.creating", {{"sandbox", id}, {"pool", pool}});
    supply_.work.add({WorkKind::Create, id, pool});
    return true;
}

void PoolRefiller::publishDisk() const {
    const std::uint64_t promised = supply_.warm.promisedDisk();
    const std::uint64_t most = disk_.roomFor(0, promised).most;
    history_.metrics.workspaceDisk(static_cast<double>(promised),
                                   most == UINT64_MAX ? 0 : static_cast<double>(most));
}

}  // namespace hearth::controller
