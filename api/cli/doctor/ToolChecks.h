#pragma once

#include <string>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Checks the programs and files that serving needs beside the kernel; `needs_root`: the runtime
/// needs root, and so a launcher.
Findings checkTools(const ServeConfig& config, bool needs_root);
/// Checks that the addresses are free, or held by a Hearth server that is ready.
Findings checkServer(const ServeConfig& config);
/// Checks that a Hearth server answers at the URL of HEARTH_URL, which the commands use.
/// `authority`: HEARTH_CA_FILE; may be empty.
Finding checkClientUrl(const std::string& url, const std::string& authority);
/// Checks the Docker Engine that DOCKER_HOST names. Without it the docker runtime fails (`needed`);
/// otherwise only `bench --against docker` needs one.
Finding checkDocker(bool needed);
/// How the agent would get into that Engine's containers, and why. Tries it with an empty image and
/// a container of it that is never started; both are removed again.
Finding checkDockerAgent(const ServeConfig& config);

/// Judges the output of `runc --version`: "runc version 1.1.5+ds1", and Debian's patch level after
/// "commit:".
Finding judgeRunc(const std::string& text);

}  // namespace hearth::cli
