#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::controller {

/// The parts of the work queue. Each has its own workers, so slow work in one never delays another.
enum class Lane : std::uint8_t {
    Records,   ///< records of executions, weights: memory and kernel files only
    Pools,     ///< what pools lack: memory only
    Creates,   ///< sandboxes on their way to Ready
    Destroys,  ///< sandboxes on their way out
    Images,    ///< images, layers, kept files: minutes, disks and registries
    Looks,     ///< questions to the runtime that the end of an execution waits for
    Forgets,   ///< what agents need not keep: nothing waits for it
    Asks,      ///< questions to agents and runtimes that may answer late
    Results,   ///< long results of executions: processor only
    Gpus,      ///< scrubs of GPUs: minutes
    Probes,    ///< questions to agents that nobody waits for
};
inline constexpr std::size_t kLanes = 11;

struct LaneRules {
    const char* name;  ///< in metrics
    unsigned workers;
    /// The last so many free workers go only to groups that have none: one pool never takes all.
    unsigned reserved;
};

const LaneRules& rulesOf(Lane lane);

/// The kind of object that a key names.
enum class WorkKind : std::uint8_t {
    Execution,       ///< its record, once it has ended
    OneShot,         ///< the end of a one shot's workspace
    AdoptedOneShot,  ///< the same of one that a crash left
    Lost,            ///< a loss that a thread that reads agents has heard of
    Overdue,         ///< executions that did not end when they should
    Weight,          ///< whether a sandbox goes before the others
    Pool,            ///< what a pool lacks or has too many of
    Create,          ///< a sandbox's next step to Ready
    Sandbox,         ///< a sandbox's end, or a look at it
    Unpack,          ///< an image that creates wait for
    Image,           ///< an image that claims wait for
    Images,          ///< images that nobody needs any more
    Layer,           ///< a layer that a pool asks for
    Layers,          ///< layers that no pool asks for any more
    Artifacts,       ///< kept files that have expired
    Sweep,           ///< what a crash has left
    Forget,          ///< an execution that its agent may forget
    Oom,             ///< whether the kernel has killed for memory
    Suspect,         ///< a sandbox that does not answer
    Orphans,         ///< sandboxes that nobody knows
    Measure,         ///< gauges that no event sets: disks, images, the launcher
    Pause,           ///< a workspace that is idle
    Result,          ///< results of an execution that wait to be read
    Gpu,             ///< a GPU that nobody holds any more: its scrub
    Gpus,            ///< whether the GPUs are as they were
    Probe,           ///< a ready sandbox, whether its agent answers
    Probes,          ///< all of them
    Usage,           ///< what workspaces use
};
inline constexpr std::size_t kWorkKinds = 28;

/// As in logs and metrics.
std::string_view nameOf(WorkKind kind);
Lane laneOf(WorkKind kind);

}  // namespace hearth::controller
