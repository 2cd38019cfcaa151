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

/// Use and limits of containers: read from their control groups where those are this machine's,
/// else from the daemon, which does not know what the kernel killed for memory. Only the daemon
/// changes limits. Containers go by name. Thread-safe; `engine` must outlive it.
class ContainerUsage {
public:
    explicit ContainerUsage(EngineClient& engine);

    /// nullopt if it is gone.
    std::optional<SandboxUsage> usage(const std::string& name, TimePoint until);
    /// See ContainerRuntime::narrow().
    std::optional<LimitInUse> narrow(const std::string& name, const SandboxLimits& limits,
                                     TimePoint until);
    /// The container ends.
    void forget(const std::string& name);

private:
    std::optional<std::string> groupOf(const std::string& name, TimePoint until);
    /// From the daemon; with what the kernel can take back of memory, or without it.
    std::optional<SandboxUsage> ask(const std::string& name, bool spare, TimePoint until);
    /// Usage without what the kernel can take back of memory.
    std::optional<SandboxUsage> needs(const std::string& name, TimePoint until);

    EngineClient& engine_;
    const sys::Cgroups cgroups_;
    Mutex mutex_;
    /// Of control groups, by name.
    std::map<std::string, std::string> groups_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::docker
