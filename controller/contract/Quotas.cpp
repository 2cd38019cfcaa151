#include "controller/contract/Quotas.h"

#include <nlohmann/json.hpp>

#include "base/Units.h"

namespace hearth::controller {

Json quotaDocument(const QuotaSpec& spec) {
    Json out = Json::object();
    const auto put = [&](const char* key, const auto& value) {
        if (value) out[key] = *value;
    };
    put("workspaces", spec.workspaces);
    if (spec.milli_cpu) out["cpu"] = formatMilliCpu(static_cast<std::uint32_t>(*spec.milli_cpu));
    if (spec.memory_bytes) out["memory"] = formatBytes(*spec.memory_bytes);
    put("gpus", spec.gpus);
    put("executions", spec.executions);
    put("claimsPerSecond", spec.claims_per_second);
    put("claimBurst", spec.claim_burst);
    out["weight"] = spec.weight;
    out["guaranteed"] = Json::object();
    for (const auto& [pool, floor] : spec.guaranteed) out["guaranteed"][pool] = floor;
    return out;
}

}  // namespace hearth::controller
