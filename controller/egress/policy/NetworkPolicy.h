#pragma once

#include <vector>

#include "base/Texts.h"
#include "controller/egress/policy/AllowList.h"

namespace hearth::egress {

inline constexpr std::uint16_t kHttpPort = 80;
inline constexpr std::uint16_t kHttpsPort = 443;

/// The reach of a sandbox: nothing, package indexes, or also the destinations of a list.
enum class NetworkMode { None, Mirror, Egress };

inline constexpr Texts<NetworkMode, 3> kNetworkModes{{"None", "Mirror", "Egress"}};

/// The network of one workspace: its pool's mode and list, or less than these.
struct NetworkPolicy {
    NetworkMode mode = NetworkMode::None;
    /// Each list must allow a destination: the pool's, and the claim's if it has one.
    std::vector<AllowList> lists;

    bool allows(const Destination& destination) const;
};

}  // namespace hearth::egress
