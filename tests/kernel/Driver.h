#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/host/Instance.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::kernel_test {

/// One runtime under test, with all that it needs of this machine.
class Driver {
public:
    virtual ~Driver() = default;
    /// Makes the runtime. It may be called again after stop().
    virtual void start() = 0;
    /// Ends the runtime like a server that stops. Its sandboxes live on.
    virtual void stop() = 0;
    /// Ends the runtime with kill -9 of its process, if it has one.
    virtual void kill() = 0;
    virtual pid_t launcherPid() = 0;
    virtual pool::ContainerRuntime& runtime() = 0;
    /// The image `shell` with the probe in its /bin.
    virtual pool::SandboxSpec image() = 0;
    /// Returns the first process of a sandbox, as the host numbers it.
    virtual pid_t initOf(const pool::SandboxId& id) const = 0;
    /// Returns everything of the instance that this runtime still has, in words.
    virtual std::vector<std::string> leftovers() const = 0;
};

std::string environment(const char* name);

/// Forks the launcher, so the process may have only one thread.
std::unique_ptr<Driver> ociDriver(const Instance& instance);
/// Uses the daemon of DOCKER_HOST; with `copies`, as if the daemon were on another machine.
std::unique_ptr<Driver> dockerDriver(const Instance& instance, bool copies);

}  // namespace hearth::kernel_test
