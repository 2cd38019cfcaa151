#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "base/Texts.h"
#include "controller/contract/Principal.h"
#include "controller/packages/LayerLock.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

enum class ConditionType : std::uint8_t {
    Ready,
    Progressing,
    Degraded,
    Prewarmed,
    Mirrored,
    Credentials,
    GpusAvailable,
    ScalingLimited,
};
inline constexpr Texts<ConditionType, 8> kConditionTypes{{"Ready", "Progressing", "Degraded",
                                                          "Prewarmed", "Mirrored", "Credentials",
                                                          "GpusAvailable", "ScalingLimited"}};

struct PoolCondition {
    ConditionType type = ConditionType::Ready;
    bool status = false;
    std::string reason;
    std::string message;
    std::string since;  ///< RFC 3339
};

/// The layer with a pool's packages.
struct PoolPackages {
    std::string digest;
    std::string lock;  ///< file in `state/layers` of the data directory
    std::vector<LockedPackage> installed;
};

/// A forecast from a pool's past claims. Made for every pool, used only with sizing Predictive.
struct PoolForecast {
    double claims_per_second = 0;
    double start_seconds = 0;  ///< the mean
    double miss_rate = 0;      ///< share of recent claims that found no ready sandbox
    std::uint32_t target = 0;  ///< warm sandboxes that the objective needs
};

/// Shows which of a pool's schedules is in force, and when that changes.
struct PoolScheduleStatus {
    std::string entry;  ///< empty: the pool's own numbers hold
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    std::string since;        ///< RFC 3339; empty: always
    std::string next_change;  ///< RFC 3339; empty: no change is near
    std::string next_entry;   ///< empty: the pool's own numbers
};

/// The reconciler's last observation.
struct PoolStatus {
    std::int64_t observed_generation = 0;
    std::uint32_t ready = 0;
    std::uint32_t claimed = 0;
    std::uint32_t creating = 0;
    std::uint32_t draining = 0;
    std::uint32_t failed = 0;
    std::uint32_t desired = 0;
    std::uint32_t waiting = 0;
    PoolForecast forecast = {};
    std::vector<PoolCondition> conditions;
    std::optional<PoolScheduleStatus> schedule = {};  ///< only for a pool that has schedules
    std::optional<PoolPackages> packages = {};        ///< once a pool's named packages are there
};

struct PoolView {
    PoolPtr pool;  ///< never null
    PoolStatus status;
};

/// One sandbox as operators see it.
struct SandboxView {
    std::string id;
    std::string pool;
    std::string phase;  ///< Creating, Warming, Ready, Claimed, Suspect, Draining, Failed
    std::int64_t generation = 0;
    std::optional<std::string> workspace_id;
    std::string tenant;  ///< the workspace's; empty while warm
    std::string created_at;
    std::optional<std::string> ready_at;
    std::string image;
    std::string runtime;
};

/// Declared pools and their sandboxes. Reading needs any role (users see pools, not sandboxes),
/// writing needs Operator; otherwise Error(Forbidden). Thread-safe.
class Pools {
public:
    virtual ~Pools() = default;
    virtual std::vector<PoolView> list(const Principal& who) = 0;
    /// Throws Error(NotFound).
    virtual PoolView get(const Principal& who, const std::string& name) = 0;
    /// Creates a pool: Error(Conflict) if it exists. `document` is a manifest.
    virtual PoolView create(const Principal& who, const Json& document) = 0;
    /// Creates or replaces (`hearth apply`). `if_match`: the resourceVersion that must still be
    /// current, else Error(PreconditionFailed). `created` tells which it was.
    virtual PoolView put(const Principal& who, const std::string& name, const Json& document,
                         std::optional<std::int64_t> if_match, bool& created) = 0;
    /// Applies an RFC 7396 merge patch to metadata and spec.
    virtual PoolView patch(const Principal& who, const std::string& name, const Json& merge,
                           std::optional<std::int64_t> if_match) = 0;
    /// Removes a pool. Warm sandboxes go at once; claimed ones live on to their own end.
    virtual void remove(const Principal& who, const std::string& name) = 0;
    /// Ends every sandbox of the pool, claimed ones included, and waits up to `wait`; the pool
    /// stays declared and is refilled afterwards. Returns the number of sandboxes ended.
    virtual std::uint32_t drain(const Principal& who, const std::string& name) = 0;
    /// Ends every sandbox of every pool and prevents pools from being refilled, until undrainAll()
    /// or the next start.
    virtual std::uint32_t drainAll(const Principal& who) = 0;
    /// Lets pools fill and claims be served again. Does nothing if nothing is drained.
    virtual void undrainAll(const Principal& who) = 0;
    virtual std::vector<SandboxView> sandboxes(const Principal& who,
                                               const std::optional<std::string>& pool) = 0;
    virtual SandboxView sandbox(const Principal& who, const std::string& id) = 0;
    virtual void destroySandbox(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
