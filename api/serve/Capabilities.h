#pragma once

#include "api/config/ServeConfig.h"
#include "base/Json.h"
#include "controller/contract/Gpus.h"
#include "controller/egress/EgressGateway.h"
#include "controller/store/SpecStore.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/warm/WarmPool.h"

namespace hearth::program {

/// Returns the document of GET /v1/capabilities: the runtime, the isolation in force, images,
/// languages, networks, protocols. Thread-safe.
Json capabilities(const cli::ServeConfig& config, const pool::RuntimeFacts& facts,
                  const controller::SpecStore& specs, const pool::WarmPool& warm,
                  const egress::EgressGateway& gateway, const controller::Gpus& gpus);

}  // namespace hearth::program
