#include "controller/broker/NetworkPolicy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::broker {
namespace {

constexpr std::array<std::pair<NetworkMode, std::string_view>, 3> kNames{{
    {NetworkMode::None, "None"},
    {NetworkMode::Mirror, "Mirror"},
    {NetworkMode::Egress, "Egress"},
}};

}  // namespace

std::string_view networkModeName(NetworkMode mode) noexcept {
    for (const auto& [known, name] : kNames) {
        if (known == mode) return name;
    }
    return "None";
}

std::optional<NetworkMode> parseNetworkMode(std::string_view name) noexcept {
    for (const auto& [mode, known] : kNames) {
        if (known == name) return mode;
    }
    return std::nullopt;
}

bool NetworkPolicy::allows(const Destination& destination) const {
    if (mode != NetworkMode::Egress || lists.empty()) return false;
    return std::all_of(lists.begin(), lists.end(),
                       [&](const AllowList& list) { return list.allows(destination); });
}

}  // namespace hearth::broker
