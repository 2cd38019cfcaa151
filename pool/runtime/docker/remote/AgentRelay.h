#pragma once

#include <string>

#include "pool/runtime/docker/engine/EngineClient.h"
#include "pool/runtime/docker/remote/RawStream.h"

namespace hearth::pool::docker {

/// A program of the agent's that an exec has begun in a container, as uid 0 without a capability.
struct AgentRelay {
    http::ClientConnection stream;
    RawStream decoder;
    std::string early;  ///< what it has said since it was ready
};

/// Runs `/.hearth/agent MODE /.hearth/start` there and waits until it is ready. Throws
/// Error(NotFound) or Error(Conflict) where the container does not run, Error(Unavailable) with the
/// program's own words where it does not begin, Error(Deadline).
AgentRelay startRelay(EngineClient& engine, const std::string& container, const char* mode,
                      TimePoint until);

}  // namespace hearth::pool::docker
