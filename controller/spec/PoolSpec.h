#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"
#include "base/Texts.h"
#include "controller/egress/policy/Credential.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/schedule/Schedule.h"
#include "controller/spec/GpuSpec.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

inline constexpr const char* kPoolApiVersion = "hearth.dev/v1alpha1";
inline constexpr const char* kPoolKind = "SandboxPool";

/// The choices for a claim that finds no ready sandbox. It waits for one made for it: within
/// warm.max (Queue), or beyond it, within limits.members (Create). Or it is refused at once (Fail).
enum class OnEmpty { Queue, Create, Fail };
inline constexpr Texts<OnEmpty, 3> kOnEmpty{{"Queue", "Create", "Fail"}};
inline constexpr Texts<pool::Storage, 2> kStorages{{"Disk", "Memory"}};

/// How the number of warm sandboxes is set: by `warm.min`, or by a forecast of claims.
enum class SizingMode : std::uint8_t { Static, Predictive };
inline constexpr Texts<SizingMode, 2> kSizingModes{{"Static", "Predictive"}};

/// Reclaim: an idle workspace ends. Pause: it is frozen until the next call.
enum class OnIdle : std::uint8_t { Reclaim, Pause };
inline constexpr Texts<OnIdle, 2> kOnIdle{{"Reclaim", "Pause"}};

/// A validated manifest (docs/operating.md), with its defaults filled in.
struct PoolSpec {
    // template
    std::string image;        ///< a name in the store, a reference or a digest
    bool allow_tags = false;  ///< the reference may be a tag, which can change its image
    pool::SandboxLimits limits;
    pool::Storage storage = pool::Storage::Disk;
    GpuSpec gpu;
    std::string runtime_class;  ///< a cluster's; empty: its default
    Json pod_template =
        Json::object();  ///< additions to Pods (PodTemplate.h); unused outside clusters
    egress::NetworkMode network = egress::NetworkMode::None;
    std::vector<std::string> network_allow;  ///< entries of egress::AllowList, with Egress
    std::vector<egress::Credential> network_credentials;  ///< added to requests to these hosts
    // template.prewarm: done in a sandbox before it is Ready
    std::vector<std::string>
        prewarm_languages;                      ///< the languages whose interpreters are kept ready
    std::vector<std::string> prewarm_imports;   ///< Python modules that they have imported
    std::vector<std::string> prewarm_packages;  ///< pip specifiers: installed in its layer
    std::vector<std::string> prewarm_command;   ///< an argument vector, run once
    std::chrono::milliseconds prewarm_timeout = std::chrono::seconds(60);
    // warm
    std::uint32_t warm_min = 2;
    std::uint32_t warm_max = 20;
    std::uint32_t parallel_creates = 2;
    std::chrono::milliseconds max_age = std::chrono::hours(24);
    // sizing
    SizingMode sizing = SizingMode::Static;
    double miss_rate = 0.001;  ///< with Predictive: the share of claims that may find none ready
    Schedules schedules;       ///< their names are unique
    // onEmpty
    OnEmpty on_empty = OnEmpty::Queue;
    std::chrono::milliseconds max_wait = std::chrono::seconds(30);
    std::uint32_t max_queue = 64;
    // lifecycle
    std::chrono::milliseconds idle_timeout = std::chrono::minutes(10);
    std::chrono::milliseconds max_lifetime = std::chrono::hours(4);
    /// How long a sandbox with a workspace may live without answering; zero: no limit.
    std::chrono::milliseconds silence_timeout = std::chrono::minutes(5);
    OnIdle on_idle = OnIdle::Reclaim;
    /// False: an execution counts as activity when it begins and ends, and while a client follows
    /// it, but not because it runs.
    bool count_running_work = true;
    /// How long before a workspace ends by itself its owner is warned; zero: no warning.
    std::chrono::milliseconds warn_before = std::chrono::seconds(30);
    // limits
    std::uint32_t max_members = 100;
    std::uint32_t per_tenant = 10;

    bool operator==(const PoolSpec&) const = default;
};

/// The prefix of pools that the server makes for claims; no declared pool may have it.
inline constexpr std::string_view kOnDemandPrefix = "ondemand-";
inline bool isOnDemandName(std::string_view name) {
    return name.starts_with(kOnDemandPrefix);
}

/// A declared pool: the object that SpecStore keeps.
struct Pool {
    std::string name;
    PoolSpec spec;
    std::int64_t generation = 1;        ///< rises when the spec changes
    std::int64_t resource_version = 1;  ///< rises with every change
    std::int64_t created_unix_ms = 0;
    bool deleting = false;  ///< its sandboxes are being ended
    /// Why no sandbox is made for it: its stored manifest cannot be read. Empty for every other
    /// pool.
    std::string refused = {};
    /// The image reference in the claims for which the server made this pool; empty
    /// for a declared one.
    std::string on_demand = {};
    /// The uid of the cluster's object that declares it; empty: a file or a client declares it.
    std::string object = {};
};
/// Readers share pools, which never change: a change makes a new object.
using PoolPtr = std::shared_ptr<const Pool>;

/// Reads one manifest given as JSON. Unknown fields, wrong types and values out of range are
/// Error(InvalidSpec) with a pointer for each ("/spec/warm/min").
Pool parsePool(const Json& document);

/// Returns a pool from the journal. A manifest that parsePool() refuses becomes a pool of that name
/// with the reason in `refused` and its image: it must stay visible to be fixed. Throws Error if
/// not even the name can be read.
Pool storedPool(const Json& document);

/// Reads a YAML file of one or several documents; errors name the line. Bounded: 1 MiB, depth 32,
/// 20,000 values, each alias counted with its content. `source` is the file's name in messages.
std::vector<Pool> parsePoolYaml(const std::string& text, std::string_view source);

/// The pool's own range of warm sandboxes, without its schedules.
inline WarmRange ownRange(const PoolSpec& spec) {
    return {spec.warm_min, spec.warm_max};
}

/// Returns a pool's manifest, `{apiVersion, kind, metadata, spec}`, with every default written out.
Json poolDocument(const std::string& name, const PoolSpec& spec);
/// Returns the same, for storedPool().
Json storedDocument(const Pool& pool);

}  // namespace hearth::controller
