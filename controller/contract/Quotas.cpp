#include "controller/contract/Quotas.h"

#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr std::uint64_t kMostCount = 1'000'000;
constexpr double kLeastRate = 0.001;
constexpr double kMostRate = 1'000'000;

std::optional<std::uint32_t> count(Fields& fields, const char* key) {
    const std::optional<std::uint64_t> number = fields.number(key, 0, kMostCount);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

}  // namespace

TenantQuota readQuota(Fields& fields) {
    TenantQuota quota;
    quota.workspaces = count(fields, "workspaces");
    if (const Json* cpu = fields.find("cpu")) {
        const auto milli = parseMilliCpu(cpu->is_string() ? cpu->get<std::string>() : cpu->dump());
        if (!milli) fields.complain("cpu", R"(must be cores, such as "8", "0.5" or "500m")");
        quota.milli_cpu = milli;
    }
    if (const Json* memory = fields.find("memory")) {
        const auto bytes =
            parseBytes(memory->is_string() ? memory->get<std::string>() : memory->dump());
        if (!bytes) fields.complain("memory", "must be a size, such as \"16Gi\"");
        quota.memory_bytes = bytes;
    }
    quota.executions = count(fields, "executions");
    if (const Json* rate = fields.find("claimsPerSecond")) {
        if (!rate->is_number() || rate->get<double>() < kLeastRate ||
            rate->get<double>() > kMostRate) {
            fields.complain("claimsPerSecond", "must be a number from 0.001 to 1000000");
        } else {
            quota.claims_per_second = rate->get<double>();
        }
    }
    quota.claims_burst = count(fields, "claimsBurst");
    if (quota.claims_burst && !quota.claims_per_second) {
        fields.complain("claimsBurst", "needs claimsPerSecond");
    }
    if (quota.claims_burst == 0U) fields.complain("claimsBurst", "must be at least 1");
    return quota;
}

Json quotaJson(const TenantQuota& quota) {
    Json json = Json::object();
    if (quota.workspaces) json["workspaces"] = *quota.workspaces;
    if (quota.milli_cpu) {
        json["cpu"] = formatMilliCpu(static_cast<std::uint32_t>(*quota.milli_cpu));
    }
    if (quota.memory_bytes) json["memory"] = formatBytes(*quota.memory_bytes);
    if (quota.executions) json["executions"] = *quota.executions;
    if (quota.claims_per_second) json["claimsPerSecond"] = *quota.claims_per_second;
    if (quota.claims_burst) json["claimsBurst"] = *quota.claims_burst;
    return json;
}

Json quotaUseJson(const QuotaUse& use) {
    return {{"workspaces", use.workspaces},
            {"cpu", formatMilliCpu(static_cast<std::uint32_t>(use.milli_cpu))},
            {"memory", formatBytes(use.memory_bytes)},
            {"executions", use.executions}};
}

}  // namespace hearth::controller
