#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Json.h"
#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// What one tenant may have at most, over all pools together; nullopt: as much as there is.
struct TenantQuota {
    std::optional<std::uint32_t> workspaces = {};
    std::optional<std::uint64_t> milli_cpu = {};
    std::optional<std::uint64_t> memory_bytes = {};
    std::optional<std::uint32_t> executions = {};  ///< that run at once
    std::optional<double> claims_per_second = {};
    std::optional<std::uint32_t> claims_burst = {};  ///< at once; nullopt: two seconds' worth

    bool operator==(const TenantQuota&) const = default;
};

/// What a tenant has of that now. A workspace counts with its own limits.
struct QuotaUse {
    std::uint32_t workspaces = 0;
    std::uint64_t milli_cpu = 0;
    std::uint64_t memory_bytes = 0;
    std::uint32_t executions = 0;
};

/// Where a tenant's quota was declared; Everyone: in the entry of all that have none of their own.
enum class QuotaSource : std::uint8_t { None, Everyone, Config, Store };
inline constexpr Texts<QuotaSource, 4> kQuotaSources{{"none", "everyone", "config", "store"}};

/// In the place of a tenant's name: all tenants that have no quota of their own, each for itself.
inline constexpr const char* kEveryone = "*";

struct QuotaView {
    std::string tenant;
    QuotaSource source = QuotaSource::None;
    TenantQuota quota;
    QuotaUse used;
};

/// Reads the fields of a quota, as configuration and REST have them: `workspaces`, `cpu` ("8",
/// "500m"), `memory` ("16Gi"), `executions`, `claimsPerSecond`, `claimsBurst`.
TenantQuota readQuota(Fields& fields);
/// Only those that are limited.
Json quotaJson(const TenantQuota& quota);
Json quotaUseJson(const QuotaUse& use);

/// Quotas of tenants. Thread-safe.
class Quotas {
public:
    virtual ~Quotas() = default;
    /// Of every tenant that has a quota or uses anything, and kEveryone. Operators see all, others
    /// their own alone.
    virtual std::vector<QuotaView> list(const Principal& who) = 0;
    /// Error(NotFound) for another tenant's unless an operator asks.
    virtual QuotaView get(const Principal& who, const std::string& tenant) = 0;
    /// Needs Admin. In force and on disk when it returns. Error(InvalidSpec) for a limit below what
    /// the tenant uses, with a field for each; then nothing is changed. Error(Conflict) for one of
    /// the configuration.
    virtual QuotaView put(const Principal& who, const std::string& tenant,
                          const TenantQuota& quota) = 0;
    /// Needs Admin. Error(NotFound) if there is none, Error(Conflict) for one of the configuration.
    virtual void remove(const Principal& who, const std::string& tenant) = 0;
};

}  // namespace hearth::controller
