#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Instance.h"
#include "metrics/Log.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/Names.h"
#include "pool/runtime/OciRuntime.h"

namespace hearth::kernel_test {

/// True if this machine lets the kernel tests run. If not it says why and the caller returns; with
/// `kernel` in HEARTH_REQUIRE that is a failure instead.
bool canRun();

/// One instance of the embedded runtime with a data directory of its own, image `shell` unpacked
/// and the probe in its /bin. The destructor ends everything of it.
class Host {
public:
    /// Forks the launcher: the process may have one thread only. With `start` false no client is
    /// made yet, so that another host can be forked first.
    explicit Host(bool start = true);
    ~Host();
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    void start();
    /// Ends launcher and client as a server does that stops.
    void stop();
    /// kill -9 of the launcher; the client is gone afterwards, too.
    void killLauncher();
    pid_t launcherPid();

    pool::OciRuntime& runtime() { return *runtime_; }
    const pool::launcher::Names& names() const { return names_; }
    pool::SandboxSpec spec() const;
    /// Creates one with spec().
    pool::SandboxId create();

    /// First process of a sandbox, as the host numbers it.
    pid_t initOf(const pool::SandboxId& id) const;
    /// Everything of this instance that the kernel or the disk still has, in words. Waits a moment
    /// for what the kernel does behind our back.
    std::vector<std::string> leftovers() const;

private:
    void fork();
    std::vector<std::string> leftoversNow() const;

    std::string root_;
    Instance instance_;
    pool::launcher::Names names_;
    metrics::Log log_;
    Fd socket_;
    std::string digest_;
    std::unique_ptr<pool::LauncherClient> client_;
    std::unique_ptr<pool::OciRuntime> runtime_;
};

/// "a=1\nb=2" as a map.
std::map<std::string, std::string> pairs(const std::string& text);

}  // namespace hearth::kernel_test
