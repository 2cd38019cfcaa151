#pragma once

#include <vector>

#include "base/Texts.h"
#include "controller/egress/policy/AllowList.h"

namespace hearth::broker {

inline constexpr std::uint16_t kHttpPort = 80;
inline constexpr std::uint16_t kHttpsPort = 443;

/// How far a sandbox may go: nowhere, to package indexes, or also where a list allows.
enum class NetworkMode { None, Mirror, Egress };

inline constexpr Texts<NetworkMode, 3> kNetworkModes{{"None", "Mirror", "Egress"}};

/// The network of one workspace: its pool's mode and list, or less.
struct NetworkPolicy {
    NetworkMode mode = NetworkMode::None;
    /// Each must allow a destination: the pool's, and the claim's if it brought one.
    std::vector<AllowList> lists;

    bool allows(const Destination& destination) const;
};

}  // namespace hearth::broker
