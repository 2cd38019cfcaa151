#include "controller/reconcile/GpuArbiter.h"

#include <algorithm>
#include <set>

#include "controller/reconcile/sizing/Sizing.h"

namespace hearth::controller {
namespace {

using pool::Member;
using pool::Phase;

}  // namespace

GpuArbiter::GpuArbiter(const SpecStore& specs, const Supply& supply,
                       WorkspaceTerminator& terminator, const Clock& clock)
    : specs_(specs), supply_(supply), terminator_(terminator), clock_(clock) {}

std::size_t GpuArbiter::attainable(const Pool& pool) const {
    const std::size_t claimed = supply_.warm.counts(pool.name).claimed;
    const std::size_t members = pool.spec.max_members;
    const std::size_t most =
        std::min(mostUnclaimed({pool.spec, clock_.wall()}), members - std::min(members, claimed));
    if (pool.spec.gpu.count == 0) return most;
    std::set<pool::SandboxId> holders;
    for (const auto& [id, uuids] : supply_.gpus.leases()) {
        const std::optional<Member> member = supply_.warm.find(id);
        if (!member || member->phase == Phase::Claimed) holders.insert(id);
    }
    return std::min(most, supply_.gpus.attainable(pool.spec.gpu, holders) / pool.spec.gpu.count);
}

GpuLedger::Taken GpuArbiter::lease(const Pool& pool, const std::string& hash,
                                   const pool::SandboxId& id) {
    GpuLedger::Taken taken = supply_.gpus.take(id, pool.name, pool.spec.gpu, reserved(pool));
    supply_.breaker.gpus(pool.name, taken.lack);
    if (taken.uuids.empty() && !giveUpStale(pool, hash)) giveUpSpare(pool);
    return taken;
}

std::size_t GpuArbiter::servable(const Pool& pool) const {
    const std::size_t needed = supply_.line.needed(pool.name);
    return needed == 0 ? 0 : std::min(needed, attainable(pool));
}

std::size_t GpuArbiter::reserved(const Pool& pool) const {
    if (servable(pool) > 0) return 0;
    std::size_t devices = 0;
    for (const PoolPtr& other : specs_.all()) {
        if (other->spec.gpu.count == 0 || other->name == pool.name) continue;
        const std::size_t waiting = servable(*other);
        if (waiting == 0 || !supply_.gpus.overlap(other->spec.gpu, pool.spec.gpu)) continue;
        const pool::PoolCounts counts = supply_.warm.counts(other->name);
        const std::size_t coming = counts.creating + counts.warming;
        if (waiting > coming) devices += (waiting - coming) * other->spec.gpu.count;
    }
    return devices;
}

bool GpuArbiter::giveUpStale(const Pool& pool, const std::string& hash) {
    std::vector<Member> stale;
    for (const Member& member : supply_.warm.members(pool.name)) {
        if (member.gpus.empty()) continue;
        if (member.phase == Phase::Draining) return true;  // one after the other
        if (member.phase == Phase::Ready && member.template_hash != hash) stale.push_back(member);
    }
    if (stale.empty()) return false;
    if (supply_.gpus.coming(pool.spec.gpu) >= pool.spec.gpu.count) return true;
    return terminator_.retire(stale.front(), EndReason::Replaced);
}

void GpuArbiter::giveUpSpare(const Pool& pool) {
    const std::size_t waiting = servable(pool);
    if (waiting == 0 || supply_.gpus.coming(pool.spec.gpu) >= waiting * pool.spec.gpu.count) return;
    for (const PoolPtr& other : specs_.all()) {
        if (other->spec.gpu.count == 0 || other->name == pool.name) continue;
        if (servable(*other) > 0) continue;
        for (const Member& member : supply_.warm.members(other->name)) {
            const bool spare =
                member.phase == Phase::Ready && supply_.gpus.fits(member.id, pool.spec.gpu);
            if (spare && terminator_.retire(member, EndReason::Shrink)) return;
        }
    }
}

}  // namespace hearth::controller
