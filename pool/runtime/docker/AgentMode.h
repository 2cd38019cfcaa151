#pragma once

#include <string>
#include <vector>

#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// How the agent comes into containers.
enum class AgentMode {
    Auto,  ///< as bindsWork() says
    Bind,  ///< folders of this machine are mounted, its socket is handed over
    Copy,  ///< the daemon sees none of our files: a volume, and relays by exec
};

/// The chosen mode, and the reason in words.
struct AgentChoice {
    AgentMode mode = AgentMode::Bind;  ///< never Auto
    std::string reason;
};

/// Asks the daemon where `wanted` is Auto: makes an empty folder in each of `folders`, an empty
/// image and a container that would have those folders mounted and is never started, and removes it
/// all again. A daemon under another kernel is taken for one that cannot hand sockets over,
/// whatever files it shares. Throws what EngineClient::call() does, for any other failure.
AgentChoice chooseAgentMode(EngineClient& engine, AgentMode wanted,
                            const std::vector<std::string>& folders, TimePoint until);

}  // namespace hearth::pool::docker
