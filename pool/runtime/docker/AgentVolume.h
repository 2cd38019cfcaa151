#pragma once

#include <functional>
#include <string>

#include "base/Mutex.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// The folder `/.hearth` in a volume of the daemon, for a daemon that does not see this machine's
/// files. Its content is sent as an image that no container ever runs, and that is removed as soon
/// as the volume is filled. One volume per instance and version of the agent. Thread-safe.
class AgentVolume {
public:
    /// `instance` is the name of an Instance; `inside` is the folder with the agent, named after
    /// its content. `engine` must outlive it.
    AgentVolume(EngineClient& engine, const std::string& instance, std::string inside);

    /// Returns the volume's name; fills it if needed. A volume in use is complete, as no sandbox is
    /// made before that. Any other is made again: a crash may have left it half filled.
    std::string ready(TimePoint until);
    /// Reports that somebody else may have removed it: the next ready() checks.
    void doubt();
    /// Removes every volume of the instance that no container uses, and the image. Does nothing if
    /// `wanted`, called while no ready() runs, reports that a sandbox is being made.
    void removeUnused(const std::function<bool()>& wanted, TimePoint until);

private:
    void fill(TimePoint until);
    void load(TimePoint until);
    /// A missing object is no error; false for a conflict.
    bool remove(const std::string& target, TimePoint until);

    EngineClient& engine_;
    const std::string instance_;
    const std::string inside_;
    const std::string name_;
    Mutex mutex_;  ///< held while the volume is made or removed
    bool ready_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::pool::docker
