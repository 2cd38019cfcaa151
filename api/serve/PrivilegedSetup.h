#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/config/ServeConfig.h"
#include "base/Fd.h"
#include "base/Instance.h"
#include "controller/spec/PoolSpec.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::program {

/// The results of the set-up as root, before the first thread.
struct PrivilegedSetup {
    Instance instance;
    bool used_before = false;  ///< seen before anything was made for this start
    Fd use;                    ///< usedPath(), empty, at the first start: noteUse()
    Fd launcher;               ///< with the embedded runtime
    Fd lock;  ///< goes first: the launcher, ending, removes the folder that nobody needs
    std::unique_ptr<pool::docker::EngineClient> docker;  ///< with docker
    std::vector<controller::Pool> declared;
    std::vector<controller::Pool> declared_once;
};

/// Takes the instance, forks the launcher and gives root up. Only for a process with one thread.
/// Throws Error and std::system_error: what to do about it is for the person who starts the server.
/// `with_runtime` false: the caller brings a runtime that needs nothing as root.
PrivilegedSetup prepare(const cli::ServeConfig& config, bool with_runtime = true);
/// Once the state is there: from now on an instance without it has lost it.
void noteUse(PrivilegedSetup& ground) noexcept;
/// The path of a program that is installed in the same folder as this one.
std::string besideProgram(const std::string& name);

}  // namespace hearth::program
