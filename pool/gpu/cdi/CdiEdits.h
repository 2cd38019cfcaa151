#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Texts.h"

namespace hearth::pool::cdi {

/// A device node that a container gets. Fields that the file leaves out are read from the host.
struct CdiNode {
    std::string path;                         ///< in the container
    std::string host_path;                    ///< on this machine; equal to `path` by default
    std::string type = {};                    ///< "c"; empty: as it is on the host
    std::optional<std::uint32_t> major = {};  ///< both numbers or none
    std::optional<std::uint32_t> minor = {};
    std::optional<std::uint32_t> mode = {};
    std::string permissions = "rwm";

    bool operator==(const CdiNode&) const = default;
};

struct CdiMount {
    std::string host_path;
    std::string container_path;
    bool writable = false;
    bool executable = true;
    bool recursive = false;

    bool operator==(const CdiMount&) const = default;
};

/// The time when a hook runs, in the words of the OCI runtime specification.
enum class HookPoint {
    Prestart,
    CreateRuntime,
    CreateContainer,
    StartContainer,
    Poststart,
    Poststop
};
inline constexpr Texts<HookPoint, 6> kHookPoints{
    {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}};

struct CdiHook {
    HookPoint point = HookPoint::Prestart;
    std::string path;
    std::vector<std::string> args;  ///< including the program's own name, as for execve()
    std::vector<std::string> env;
    std::optional<std::uint32_t> timeout_s;

    bool operator==(const CdiHook&) const = default;
};

/// Everything that must be added to a container so that it can use some devices.
struct CdiEdits {
    std::vector<CdiNode> nodes;
    std::vector<CdiMount> mounts;
    std::vector<std::string> env;  ///< "NAME=value"
    std::vector<CdiHook> hooks;
    std::set<std::uint32_t> gids;  ///< groups that the container's processes should be in

    bool operator==(const CdiEdits&) const = default;
    bool empty() const;
    /// Adds the entries of `other` that this does not have yet. Throws Error(InvalidSpec) if the
    /// two contradict each other.
    void merge(const CdiEdits& other);
};

}  // namespace hearth::pool::cdi
