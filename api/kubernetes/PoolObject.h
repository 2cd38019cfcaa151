#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/kubernetes/ObjectStatus.h"
#include "base/Json.h"
#include "controller/contract/Pools.h"

namespace hearth::kubernetes {

/// The manifest in a SandboxPool object: what parsePool() takes. Metadata is the cluster's, except
/// for the name.
Json manifestOf(const Json& object);

/// The status that a SandboxPool object is to have. `view`: its pool, if there is one; of a refused
/// object that is the pool as it was declared before. `definition_trouble`: of DefinitionWatch.
Json poolStatusOf(const Json& object, const std::optional<controller::PoolView>& view,
                  const std::optional<Refusal>& refusal, const std::string& now,
                  const std::string& definition_trouble = {});

/// Whether they differ in more than counts, which change with every claim.
bool tellsMore(const Json& before, const Json& now);

}  // namespace hearth::kubernetes
