#pragma once

#include "api/cli/ServeConfig.h"
#include "base/Json.h"
#include "controller/SpecStore.h"
#include "controller/broker/Broker.h"
#include "pool/WarmPool.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::program {

/// The document of GET /v1/capabilities: the runtime, the isolation in force, images, languages,
/// ways out, protocols. Asks the runtime each time; thread-safe.
Json capabilities(const cli::ServeConfig& config, pool::ContainerRuntime& runtime,
                  const controller::SpecStore& specs, const pool::WarmPool& warm,
                  const broker::Broker& broker);

}  // namespace hearth::program
