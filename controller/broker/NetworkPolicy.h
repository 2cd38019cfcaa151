#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "controller/broker/AllowList.h"

namespace hearth::broker {

/// How far a sandbox may go: nowhere, to package indexes, or also where a list allows.
enum class NetworkMode { None, Mirror, Egress };

std::string_view networkModeName(NetworkMode mode) noexcept;
std::optional<NetworkMode> parseNetworkMode(std::string_view name) noexcept;

/// What one workspace may reach: its pool's mode and list, or less.
struct NetworkPolicy {
    NetworkMode mode = NetworkMode::None;
    /// Each must allow a destination: the pool's, and the claim's if it brought one.
    std::vector<AllowList> lists;

    bool allows(const Destination& destination) const;
};

}  // namespace hearth::broker
