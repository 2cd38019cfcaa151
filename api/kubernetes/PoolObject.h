#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "controller/contract/Pools.h"

namespace hearth::kubernetes {

/// The manifest in a SandboxPool object: what parsePool() takes. Metadata is the cluster's, except
/// for the name.
Json manifestOf(const Json& object);

/// metadata.generation, which the API server raises with each change of the spec.
std::int64_t generationOf(const Json& object);

/// Why an object is not in force.
struct Refusal {
    std::string reason;  ///< "InvalidSpec", "Ending", "Failed"
    std::string message;
    bool wrong = false;  ///< it stays so until somebody changes the object
};

/// The status that a SandboxPool object is to have. `view`: its pool, if there is one; of a refused
/// object that is the pool as it was declared before. Times of conditions whose status is as before
/// stay as they are in the object. Conventions: Kubernetes' API conventions, and kstatus' use of
/// Stalled.
Json statusOf(const Json& object, const std::optional<controller::PoolView>& view,
              const std::optional<Refusal>& refusal, const std::string& now);

/// Whether they differ in more than counts, which change with every claim.
bool tellsMore(const Json& before, const Json& now);

/// A merge patch of the object's status: fields that it has no more are taken out.
Json statusPatch(const Json& object, const Json& status);

/// Events (core/v1) of what is new in `now`: conditions that became true or false, or have another
/// reason. Ready and Progressing are left out: they change with every burst of claims.
std::vector<Json> eventsOf(const Json& object, const Json& before, const Json& now,
                           const std::string& time);

}  // namespace hearth::kubernetes
