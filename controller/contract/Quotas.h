#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// The name of the quota that every tenant without one of its own has.
inline constexpr const char* kDefaultQuota = "*";

/// Limits of a tenant in all pools together, its weight and guarantees. Absent: no limit.
struct QuotaSpec {
    std::optional<std::uint64_t> workspaces = {};
    std::optional<std::uint64_t> milli_cpu = {};
    std::optional<std::uint64_t> memory_bytes = {};
    std::optional<std::uint64_t> gpus = {};
    std::optional<std::uint64_t> executions = {};  ///< running at once
    std::optional<std::uint32_t> claims_per_second = {};
    std::optional<std::uint32_t> claim_burst = {};         ///< absent: twice the rate
    std::uint32_t weight = 1;                              ///< claims served in a row at each turn
    std::map<std::string, std::uint32_t> guaranteed = {};  ///< workspaces, by pool

    bool operator==(const QuotaSpec&) const = default;
};

/// Amounts that a tenant holds, or that a claim asks for.
struct QuotaUse {
    std::uint64_t workspaces = 0;
    std::uint64_t milli_cpu = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t gpus = 0;
    std::uint64_t executions = 0;

    bool operator==(const QuotaUse&) const = default;
};

/// Where a quota was declared. None: nowhere, so the tenant has no limit.
enum class QuotaSource : std::uint8_t { None, Default, Config, Store };
inline constexpr Texts<QuotaSource, 4> kQuotaSources{{"none", "default", "config", "store"}};

/// The form that REST, the store and the file of quotas use: the limits, weight and guaranteed.
Json quotaDocument(const QuotaSpec& spec);

struct QuotaView {
    std::string tenant;
    QuotaSpec spec;
    QuotaUse use;
    QuotaSource source = QuotaSource::None;
};

/// The quotas of tenants. Each tenant reads its own; operators read and change all of them, others
/// get Error(Forbidden). A change is on disk when the call returns. Thread-safe.
class Quotas {
public:
    virtual ~Quotas() = default;
    virtual QuotaView own(const Principal& who) const = 0;
    /// Returns declared quotas, and tenants that hold something; sorted by name.
    virtual std::vector<QuotaView> list(const Principal& who) const = 0;
    /// Returns the quota that holds for a tenant. Throws Error(InvalidArgument) for a bad name.
    virtual QuotaView get(const Principal& who, const std::string& tenant) const = 0;
    /// Creates or replaces. Throws Error(InvalidSpec) for a wrong field, or less than is in use;
    /// Conflict for a quota that the configuration declares.
    virtual QuotaView put(const Principal& who, const std::string& tenant, const Json& document,
                          bool& created) = 0;
    /// Removes a quota; the default one then applies. Throws as put(), and Error(NotFound).
    virtual void remove(const Principal& who, const std::string& tenant) = 0;
};

}  // namespace hearth::controller
