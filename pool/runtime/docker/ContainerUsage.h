#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/docker/engine/EngineClient.h"
#include "pool/sys/Cgroups.h"

namespace hearth::pool::docker {

/// Use and limits of containers: read from their control groups if these are on this machine, else
/// from the daemon, which does not know the kernel's kills for memory. Only the daemon changes
/// limits. Containers are identified by name. Thread-safe; `engine` must outlive it.
class ContainerUsage {
public:
    explicit ContainerUsage(EngineClient& engine);

    /// Returns nullopt if it is gone.
    std::optional<SandboxUsage> usage(const std::string& name, TimePoint until);
    /// See ContainerRuntime::narrow().
    std::optional<LimitInUse> narrow(const std::string& name, const SandboxLimits& limits,
                                     TimePoint until);
    /// Called when the container ends.
    void forget(const std::string& name);

private:
    std::optional<std::string> groupOf(const std::string& name, TimePoint until);
    /// Asks the daemon for the usage; `spare`: including memory that the kernel can reclaim.
    std::optional<SandboxUsage> ask(const std::string& name, bool spare, TimePoint until);
    /// Usage without memory that the kernel can reclaim.
    std::optional<SandboxUsage> needs(const std::string& name, TimePoint until);

    EngineClient& engine_;
    const sys::Cgroups cgroups_;
    Mutex mutex_;
    /// Paths of control groups, by container name.
    std::map<std::string, std::string> groups_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::docker
