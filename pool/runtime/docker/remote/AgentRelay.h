#pragma once

#include <string>

#include "pool/runtime/docker/engine/EngineClient.h"
#include "pool/runtime/docker/remote/RawStream.h"

namespace hearth::pool::docker {

/// A program of the agent that an exec started in a container, as uid 0 without capabilities.
struct AgentRelay {
    http::ClientConnection stream;
    RawStream decoder;
    std::string early;  ///< its output since it was ready
};

/// Runs `/.hearth/agent MODE /.hearth/start` there and waits until it is ready. Throws
/// Error(NotFound) or Error(Conflict) if the container does not run, Error(Unavailable) with the
/// program's own words if it does not start, Error(Deadline).
AgentRelay startRelay(EngineClient& engine, const std::string& container, const char* mode,
                      TimePoint until);

}  // namespace hearth::pool::docker
