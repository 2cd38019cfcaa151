#pragma once

#include <string>
#include <vector>

#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// How the agent gets into containers.
enum class AgentMode {
    Auto,  ///< chosen by chooseAgentMode()
    Bind,  ///< folders of this machine are mounted, its socket is handed over
    Copy,  ///< the daemon sees none of these files: a volume, and relays by exec
};

/// The chosen mode, with the reason in words.
struct AgentChoice {
    AgentMode mode = AgentMode::Bind;  ///< never Auto
    std::string reason;
};

/// Tests the daemon if `wanted` is Auto: makes an empty folder in each of `folders`, an empty image
/// and a container that would mount those folders and is never started, and removes all of them
/// again. A daemon under another kernel is assumed to be unable to hand sockets over, whatever
/// files it shares. Throws what EngineClient::call() does, for any other failure.
AgentChoice chooseAgentMode(EngineClient& engine, AgentMode wanted,
                            const std::vector<std::string>& folders, TimePoint until);

}  // namespace hearth::pool::docker
