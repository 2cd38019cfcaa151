#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/cli/ServeConfig.h"
#include "base/Fd.h"
#include "base/Instance.h"
#include "controller/PoolSpec.h"
#include "pool/runtime/docker/EngineClient.h"

namespace hearth::program {

/// What was done as root, before the first thread.
struct Groundwork {
    Instance instance;
    Fd launcher;  ///< with the embedded runtime
    Fd lock;      ///< goes first: the launcher, ending, removes the folder that nobody needs
    std::unique_ptr<pool::docker::EngineClient> docker;  ///< with docker
    std::vector<controller::Pool> declared;
};

/// Takes the instance, forks the launcher and gives root up. Only for a process with one thread.
/// Throws Error and std::system_error: what to do about it is for the person who starts the server.
Groundwork prepare(const cli::ServeConfig& config);
/// The path of a program that is installed in the same folder as this one.
std::string besideProgram(const std::string& name);

}  // namespace hearth::program
