#include "controller/services/GpuService.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/Error.h"

namespace hearth::controller {
namespace {

void requireGpuOperator(const Principal& who) {
    if (!who.atLeast(Role::Operator)) {
        throw Error(ErrorCode::Forbidden, "only an operator may see or change GPUs")
            .hint("GET /v1/capabilities names the products that there are");
    }
}

}  // namespace

std::vector<GpuView> GpuService::list(const Principal& who) const {
    requireGpuOperator(who);
    std::vector<GpuView> all = ledger_.devices();
    for (GpuView& view : all) {
        for (GpuHolder& holder : view.holders) {
            if (const std::optional<pool::Member> member = warm_.find(holder.sandbox)) {
                holder.workspace = member->workspace;
                holder.tenant = member->tenant;
            }
        }
    }
    return all;
}

GpuView GpuService::get(const Principal& who, const std::string& uuid) const {
    for (GpuView& view : list(who)) {
        if (view.uuid == uuid) return std::move(view);
    }
    throw Error(ErrorCode::NotFound, "no GPU " + uuid).hint("hearth get gpus lists them");
}

GpuView GpuService::scrub(const Principal& who, const std::string& uuid) {
    const GpuView view = get(who, uuid);
    if (!ledger_.retry(uuid)) {
        throw Error(ErrorCode::Conflict,
                    "GPU " + uuid + " is not condemned: it is " + kGpuStates.of(view.state))
            .hint("Hearth scrubs every other GPU by itself when its last user has gone");
    }
    return get(who, uuid);
}

std::vector<GpuProduct> GpuService::products() const {
    std::map<std::tuple<std::string, std::string, std::uint64_t>, std::uint32_t> counts;
    for (const GpuView& view : ledger_.devices()) {
        if (view.state == GpuState::Split || view.state == GpuState::Gone) continue;
        ++counts[{view.product, view.profile, view.memory_bytes}];
    }
    std::vector<GpuProduct> all;
    for (const auto& [what, count] : counts) {
        all.push_back({std::get<0>(what), std::get<1>(what), std::get<2>(what), count});
    }
    return all;
}

}  // namespace hearth::controller
