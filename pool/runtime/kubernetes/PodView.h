#pragma once

#include <optional>
#include <string>

#include "base/Json.h"
#include "pool/agent/transport/TcpDialer.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::pool::kubernetes {

/// What the API server says of one of our Pods.
struct PodView {
    SandboxInfo info;
    std::string node;  ///< empty: none yet
    /// Where its agent is and what it must prove to be; none until both are known.
    std::optional<agent::PodAgent> agent;
};

/// Nullopt for a Pod that is none of ours.
std::optional<PodView> viewOf(const Json& pod);

}  // namespace hearth::pool::kubernetes
