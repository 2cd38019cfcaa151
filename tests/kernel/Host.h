#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/host/Instance.h"
#include "pool/isolation/SandboxPaths.h"
#include "tests/kernel/Driver.h"

namespace hearth::kernel_test {

/// Returns true if this machine can run the kernel tests. Otherwise it prints why, and the caller
/// returns. With `kernel` in HEARTH_REQUIRE it fails the test instead.
bool canRun();

/// The runtime that HEARTH_TEST_RUNTIME names: oci (also without a name), docker, or docker-remote,
/// which is docker with an agent that is copied.
enum class Kind { Oci, Docker };
Kind kind();

/// One instance of the runtime under test, with a data directory of its own and image `shell` with
/// the probe in its /bin. The destructor ends everything of the instance.
class Host {
public:
    /// If the runtime has a launcher, the process may have only one thread. With `start` false no
    /// runtime is made yet, so that another host can fork its launcher first.
    explicit Host(bool start = true);
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void start();
    /// Ends the driver of the sandboxes like a server that stops.
    void stop();
    /// Ends the driver with kill -9 of its process, if it has one.
    void kill();
    pid_t launcherPid() { return driver_->launcherPid(); }

    pool::ContainerRuntime& runtime() { return driver_->runtime(); }
    const pool::launcher::SandboxPaths& names() const { return names_; }
    pool::SandboxSpec spec() const;
    /// Creates a sandbox with spec().
    pool::SandboxId create();

    /// Returns the first process of a sandbox, as the host numbers it.
    pid_t initOf(const pool::SandboxId& id) const { return driver_->initOf(id); }
    /// Returns the control group of a sandbox, for its memory.
    std::string cgroupOf(const pool::SandboxId& id) const;
    /// Returns everything of this instance that the kernel, the disk or the daemon still has, in
    /// words. Waits a moment for changes that are still under way.
    std::vector<std::string> leftovers() const;

private:
    std::string root_;
    Instance instance_;
    pool::launcher::SandboxPaths names_;
    std::unique_ptr<Driver> driver_;
    bool started_ = false;
};

/// Returns "a=1\nb=2" as a map.
std::map<std::string, std::string> pairs(const std::string& text);

}  // namespace hearth::kernel_test
