#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/kubernetes/ObjectStatus.h"
#include "base/Json.h"
#include "controller/contract/Pools.h"

namespace hearth::kubernetes {

/// Returns the manifest in a SandboxPool object, for parsePool(). Of the metadata it has only the
/// name; the rest is the cluster's.
Json manifestOf(const Json& object);

/// Returns the status for a SandboxPool object. `view`: its pool, if there is one; for a refused
/// object the pool as it was declared before. `definition_trouble`: DefinitionWatch::trouble().
Json poolStatusOf(const Json& object, const std::optional<controller::PoolView>& view,
                  const std::optional<Refusal>& refusal, const std::string& now,
                  const std::string& definition_trouble = {});

/// True if the statuses differ in more than counts, which change with every claim.
bool tellsMore(const Json& before, const Json& now);

}  // namespace hearth::kubernetes
