#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Json.h"
#include "base/host/HostPressure.h"
#include "controller/contract/ClaimLedger.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// A pool's sandboxes and its line at one moment.
struct PoolThen {
    std::uint32_t ready = 0;
    std::uint32_t claimed = 0;
    std::uint32_t creating = 0;  ///< or warming
    std::uint32_t waiting = 0;   ///< claims in line
    bool unpacking = false;      ///< its image was unpacked while the claim stood in line
};

/// The state that a claim met when it arrived. Its workspace's timeline is made from it.
struct ClaimScene {
    std::uint32_t place = 0;  ///< in line, from 1; 0: it never stood in line
    PoolThen pool;
    std::optional<HostPressure> pressure;  ///< only for claims that had to wait, or were slow
};

/// A claim as stored in the journal.
struct ClaimStory {
    ClaimLedger ledger;
    ClaimScene scene;
    std::string trace_id;  ///< empty: none
};
Json storyJson(const ClaimStory& story);
ClaimStory storyFrom(const Json& json);

/// The stages in which a claim or an execution spent its time.
struct Timeline {
    struct Stage {
        std::string name;
        double ms = 0;
    };
    std::string id;
    bool execution = false;  ///< else a workspace
    std::string pool;
    std::string trace_id;    ///< empty: none
    std::string started_at;  ///< empty: not known
    double total_ms = 0;
    bool running = false;  ///< its last stage is not finished
    std::vector<Stage> stages{};
    std::optional<double> first_output_ms{};  ///< after the request
    double cpu_ms = 0;                        ///< set for an execution that has ended
    bool out_of_memory = false;               ///< it ended for want of memory
    std::optional<ClaimScene> scene{};        ///< none: nothing was claimed for it
    std::string largest{};                    ///< the stage that took longest; empty: none did
    std::string sentence{};                   ///< names the largest cause
};

/// Fills in `largest` and `sentence` from the rest.
void explain(Timeline& timeline);

/// Timelines that a principal may see. A workspace's is visible to its tenant and every operator,
/// for 24 hours after its end; an execution's follows the rules of Executions::find().
/// Thread-safe.
class Timelines {
public:
    virtual ~Timelines() = default;
    /// Errors: NotFound.
    virtual Timeline ofWorkspace(const Principal& who, const std::string& id) = 0;
    virtual Timeline ofExecution(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
