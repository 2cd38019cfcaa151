#pragma once

#include <string>

#include "api/cli/ServeConfig.h"

namespace hearth::cli {

/// Reads the YAML file of `hearth serve` into `config`; see readConfigText. At most 1 MiB.
void readConfigFile(const std::string& path, ServeConfig& config);

/// Throw UsageError that names `origin`, the place where the value was given.
RuntimeChoice runtimeFromName(const std::string& name, const std::string& origin);
pool::docker::AgentMode agentModeFromName(const std::string& name, const std::string& origin);
ShutdownWarm shutdownWarmFromName(const std::string& name, const std::string& origin);

}  // namespace hearth::cli
