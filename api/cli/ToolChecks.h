#pragma once

#include <string>

#include "api/cli/Finding.h"
#include "api/cli/ServeConfig.h"

namespace hearth::cli {

/// What must be installed and prepared beside the kernel, by the configuration that would serve.
Findings checkTools(const ServeConfig& config);
/// Whether the addresses are free, or the one who holds them is a Hearth server that is ready.
Findings checkServer(const ServeConfig& config);
/// The Engine API's socket, which only `bench --against docker` needs: never more than a warning.
Finding checkDocker(const Environment& environment);

/// Judges the first line of `runc --version`, "runc version 1.1.5+ds1".
Finding judgeRunc(const std::string& version_text);

}  // namespace hearth::cli
