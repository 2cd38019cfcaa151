#pragma once

#include <string>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Checks the programs and files that serving needs beside the kernel, with a runtime that needs
/// root, and so a launcher, or with one that does not.
Findings checkTools(const ServeConfig& config, bool needs_root);
/// Checks that the addresses are free, or held by a Hearth server that is ready.
Findings checkServer(const ServeConfig& config);
/// Checks that a Hearth server answers at the URL of HEARTH_URL, which the commands talk to.
/// `authority`: HEARTH_CA_FILE; may be empty.
Finding checkClientUrl(const std::string& url, const std::string& authority);
/// The Docker Engine that DOCKER_HOST names. Without it the docker runtime fails (`needed`);
/// elsewhere only `bench --against docker` needs one.
Finding checkDocker(bool needed);
/// How the agent would come into that Engine's containers, and why. Asks by an empty image and a
/// container of it that is never started; both are removed again.
Finding checkDockerAgent(const ServeConfig& config);

/// Judges what `runc --version` says: "runc version 1.1.5+ds1", and Debian's patch level behind
/// "commit:".
Finding judgeRunc(const std::string& text);

}  // namespace hearth::cli
