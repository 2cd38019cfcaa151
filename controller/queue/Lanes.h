#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::controller {

/// The parts of the work queue. Each has its own workers, so slow work in one never delays another.
enum class Lane : std::uint8_t {
    Records,   ///< records of executions, weights: memory and kernel files only
    Pools,     ///< the difference between pools and their specs: memory only
    Creates,   ///< sandboxes on their way to Ready
    Destroys,  ///< sandboxes on their way out
    Images,    ///< images, layers, kept files: minutes, disks and registries
    Looks,     ///< calls to the runtime that the end of an execution waits for
    Forgets,   ///< results that agents may drop: nothing waits for it
    Asks,      ///< calls to agents and runtimes that may answer late
    Gpus,      ///< scrubs of GPUs: minutes
    Probes,    ///< calls to agents that nothing waits for
};
inline constexpr std::size_t kLanes = 10;

struct LaneRules {
    const char* name;  ///< in metrics
    unsigned workers;
    /// The last `reserved` free workers go only to groups that have none: one pool never takes all.
    unsigned reserved;
};

const LaneRules& rulesOf(Lane lane);

/// The kind of object that a key names.
enum class WorkKind : std::uint8_t {
    Execution,       ///< its record, once it has ended
    OneShot,         ///< the end of a one shot's workspace
    AdoptedOneShot,  ///< the same for one left by a crash
    Lost,            ///< a loss that a thread reading agents has noticed
    Overdue,         ///< executions that did not end when they should
    Weight,          ///< a sandbox's priority over others
    Pool,            ///< sandboxes that a pool lacks or has too many of
    Create,          ///< a sandbox's next step to Ready
    Sandbox,         ///< a sandbox's end, or a check of it
    Unpack,          ///< an image that creates wait for
    Image,           ///< an image that claims wait for
    Images,          ///< images that are no longer needed
    Layer,           ///< a layer that a pool needs
    Layers,          ///< layers that no pool needs any more
    Artifacts,       ///< kept files that have expired
    Sweep,           ///< leftovers of a crash
    Forget,          ///< an execution that its agent may forget
    Suspect,         ///< a sandbox that does not answer
    Orphans,         ///< sandboxes without a record
    Measure,         ///< gauges that no event sets: disks, images, the launcher
    Pause,           ///< an idle workspace
    Gpu,             ///< the scrub of a GPU that no sandbox holds any more
    Gpus,            ///< a check of the GPUs for changes
    Probe,           ///< a check that a ready sandbox's agent answers
    Probes,          ///< probes of all ready sandboxes
    Usage,           ///< the usage of workspaces
    Files,           ///< the machine's table of open files
};
inline constexpr std::size_t kWorkKinds = 27;

/// The name in logs and metrics.
std::string_view nameOf(WorkKind kind);
Lane laneOf(WorkKind kind);

}  // namespace hearth::controller
