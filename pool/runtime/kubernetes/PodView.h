#pragma once

#include <optional>
#include <string>

#include "base/Json.h"
#include "pool/agent/transport/TcpDialer.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::pool::kubernetes {

/// The API server's data about one Pod of this server.
struct PodView {
    SandboxInfo info;
    std::string node;  ///< empty: none yet
    /// Its agent's address, and the identity it must prove; none until both are known.
    std::optional<agent::PodAgent> agent;
};

/// Returns nullopt for a Pod that is not this server's.
std::optional<PodView> viewOf(const Json& pod);

}  // namespace hearth::pool::kubernetes
