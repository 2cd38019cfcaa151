#include "controller/quota/QuotaDocument.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Units.h"
#include "controller/contract/TenantName.h"

namespace hearth::controller {
namespace {

constexpr std::uint64_t kMostCount = 1'000'000;
constexpr std::uint32_t kMostRate = 100'000;
constexpr std::uint32_t kMostWeight = 100;
constexpr std::uint64_t kMostFloor = 10'000;

std::optional<std::uint64_t> quantity(Fields& fields, const char* key, const char* rule,
                                      std::optional<std::uint64_t> (*read)(const std::string&)) {
    const Json* value = fields.find(key);
    if (value == nullptr) return std::nullopt;
    const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
    if (!value->is_boolean()) {
        if (const auto amount = read(text)) return amount;
    }
    fields.complain(key, "is " + dumpJson(*value) + ", and " + rule);
    return std::nullopt;
}

std::optional<std::uint64_t> count(Fields& fields, const char* key, std::uint64_t least,
                                   std::uint64_t most) {
    const Json* value = fields.find(key);
    if (value == nullptr) return std::nullopt;
    const bool whole = value->is_number_unsigned() || (value->is_number_integer() && *value >= 0);
    const std::uint64_t number = whole ? value->get<std::uint64_t>() : 0;
    if (whole && number >= least && number <= most) return number;
    fields.complain(key, "is " + dumpJson(*value) + ", and must be a whole number from " +
                             std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
}

std::optional<std::uint32_t> narrow(std::optional<std::uint64_t> value) {
    if (!value) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
}

}  // namespace

QuotaSpec parseQuota(const Json& document, const std::string& tenant) {
    Error error(ErrorCode::InvalidSpec, "the quota of tenant " + tenant + " is wrong");
    const Fields::Wrong wrong = [&](FieldError each) {
        error.field(std::move(each.pointer), std::move(each.reason));
    };
    Fields fields(document, "", wrong, Fields::Absent::Fine);
    QuotaSpec spec;
    spec.workspaces = count(fields, "workspaces", 0, kMostCount);
    spec.milli_cpu = quantity(fields, "cpu", "must be a number of processors such as 4 or \"500m\"",
                              [](const std::string& text) -> std::optional<std::uint64_t> {
                                  return parseMilliCpu(text);
                              });
    spec.memory_bytes = quantity(fields, "memory", "must be bytes such as \"8Gi\"",
                                 [](const std::string& text) { return parseBytes(text); });
    spec.gpus = count(fields, "gpus", 0, kMostCount);
    spec.executions = count(fields, "executions", 0, kMostCount);
    spec.claims_per_second = narrow(count(fields, "claimsPerSecond", 1, kMostRate));
    spec.claim_burst = narrow(count(fields, "claimBurst", 1, kMostRate));
    spec.weight = narrow(count(fields, "weight", 1, kMostWeight)).value_or(1);
    if (spec.claim_burst && !spec.claims_per_second) {
        fields.complain("claimBurst", "needs claimsPerSecond");
    }
    std::uint64_t floors = 0;
    if (const Json* given = fields.find("guaranteed"); given != nullptr && given->is_object()) {
        for (const auto& [pool, value] : given->items()) {
            const std::string pointer = "guaranteed/" + pool;
            if (value.is_number_integer() && value >= 1 && value <= kMostFloor) {
                spec.guaranteed[pool] = value.get<std::uint32_t>();
                floors += spec.guaranteed[pool];
            } else {
                fields.complain(pointer, "is " + dumpJson(value) +
                                             ", and must be a whole number from 1 to " +
                                             std::to_string(kMostFloor));
            }
        }
    } else if (given != nullptr) {
        fields.complain("guaranteed", "must map pools to numbers of workspaces");
    }
    if (tenant == kDefaultQuota && !spec.guaranteed.empty()) {
        fields.complain("guaranteed", "belongs to one tenant, not to the default quota");
    }
    if (spec.workspaces && floors > *spec.workspaces) {
        fields.complain("guaranteed", "is " + std::to_string(floors) +
                                          " workspaces in all, and the quota has " +
                                          std::to_string(*spec.workspaces));
    }
    fields.finish();
    if (!error.fields().empty()) {
        throw error.hint(
            "fields: workspaces, cpu, memory, gpus, executions, claimsPerSecond, "
            "claimBurst, weight, guaranteed");
    }
    return spec;
}

void requireQuotaName(const std::string& tenant) {
    if (tenant == kDefaultQuota || isTenantName(tenant)) return;
    throw Error(ErrorCode::InvalidArgument, "\"" + tenant + "\" is not a tenant's name")
        .field("/tenant", std::string(kTenantNameRule) + ", or * for the default quota");
}

std::map<std::string, QuotaSpec> parseQuotas(const Json& document) {
    if (!document.is_object()) {
        throw Error(ErrorCode::InvalidSpec, "the quotas must be a mapping")
            .hint("write `TENANT: {workspaces: 10}` lines");
    }
    std::map<std::string, QuotaSpec> quotas;
    for (const auto& [tenant, quota] : document.items()) {
        requireQuotaName(tenant);
        quotas.emplace(tenant, parseQuota(quota, tenant));
    }
    return quotas;
}

}  // namespace hearth::controller
