#pragma once

#include <functional>
#include <string>

#include "base/Mutex.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// The folder `/.hearth` in a volume of the daemon, for one that does not see this machine's files:
/// its content goes there as an image that no container ever runs, and that is gone as soon as the
/// volume is filled. One volume for each instance and version of the agent. Thread-safe.
class AgentVolume {
public:
    /// `instance` is a name of launcher::Names; `inside` the folder that holds the agent, named
    /// after its content. `engine` must outlive it.
    AgentVolume(EngineClient& engine, const std::string& instance, std::string inside);

    /// The volume's name, filling it if need be. A volume that a sandbox uses is whole: none is
    /// made before that. Any other is made anew, as it may be half of what a crash has left.
    std::string ready(TimePoint until);
    /// It may have been removed by somebody else: the next ready() looks.
    void doubt();
    /// Removes every volume of the instance that no container uses, and the image; nothing where
    /// `wanted`, asked while no ready() is under way, says that a sandbox is being made.
    void removeUnused(const std::function<bool()>& wanted, TimePoint until);

private:
    void fill(TimePoint until);
    void load(TimePoint until);
    /// Nothing there is fine; false for a conflict.
    bool remove(const std::string& target, TimePoint until);

    EngineClient& engine_;
    const std::string instance_;
    const std::string inside_;
    const std::string name_;
    Mutex mutex_;  ///< held while the volume is made or removed
    bool ready_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::pool::docker
