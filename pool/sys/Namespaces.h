#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace hearth::sys {

/// Moves this single-threaded process into its own mount namespace. Its mounts are visible only
/// here and vanish with the last process in it; unmounts of the host take effect here too.
void enterPrivateMounts();

/// Mounts or throws std::system_error with the target.
void mount(const std::string& source, const std::string& target, const std::string& type,
           unsigned long flags, const std::string& data);
/// Detaches a mount; a missing one is fine.
void unmount(const std::string& target);

/// Writes `user.<name>` values as seen inside the user namespace of process `pid`, from a child of
/// this single-threaded process. Names that this kernel does not know are skipped.
void writeUserLimits(pid_t pid, const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace hearth::sys
