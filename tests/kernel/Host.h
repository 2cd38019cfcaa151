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

/// True if this machine lets the kernel tests run. If not it says why and the caller returns; with
/// `kernel` in HEARTH_REQUIRE that is a failure instead.
bool canRun();

/// Which runtime HEARTH_TEST_RUNTIME names: oci (if it names none), docker, or docker-remote, the
/// same with an agent that is copied.
enum class Kind { Oci, Docker };
Kind kind();

/// One instance of the runtime under test with a data directory of its own, image `shell` and the
/// probe in its /bin. The destructor ends everything of it.
class Host {
public:
    /// Where the runtime has a launcher, the process may have one thread only. With `start` false
    /// no runtime is made yet, so that another host can fork its launcher first.
    explicit Host(bool start = true);
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void start();
    /// Ends what drives the sandboxes as a server does that stops.
    void stop();
    /// The same by kill -9, where that is a process.
    void kill();
    pid_t launcherPid() { return driver_->launcherPid(); }

    pool::ContainerRuntime& runtime() { return driver_->runtime(); }
    const pool::launcher::SandboxPaths& names() const { return names_; }
    pool::SandboxSpec spec() const;
    /// Creates one with spec().
    pool::SandboxId create();

    /// First process of a sandbox, as the host numbers it.
    pid_t initOf(const pool::SandboxId& id) const { return driver_->initOf(id); }
    /// The control group of a sandbox, for its memory.
    std::string cgroupOf(const pool::SandboxId& id) const;
    /// Everything of this instance that the kernel, the disk or the daemon still has, in words.
    /// Waits a moment for what happens behind our back.
    std::vector<std::string> leftovers() const;

private:
    std::string root_;
    Instance instance_;
    pool::launcher::SandboxPaths names_;
    std::unique_ptr<Driver> driver_;
    bool started_ = false;
};

/// "a=1\nb=2" as a map.
std::map<std::string, std::string> pairs(const std::string& text);

}  // namespace hearth::kernel_test
