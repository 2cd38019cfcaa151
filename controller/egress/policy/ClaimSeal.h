#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::broker {

/// What of a claim its sandbox's agent keeps for the server, and must neither read nor change: how
/// far the workspace may go, what its keyring is made of, and whose it is.
struct ClaimReach {
    NetworkMode mode = NetworkMode::None;
    /// Each list must allow a destination: the pool's, and the claim's if it brought one.
    std::vector<std::vector<std::string>> allow;
    Json keys = {};              ///< KeyringFactory::Made::kept
    std::string tenant = {};     ///< empty: was sealed before this was
    std::string workspace = {};  ///< the same
};

/// Closes and opens it under a key that only the server has. An agent that was taken over can
/// leave it out, which means no network and nobody's workspace, or tell an older part of its own
/// claim, of which there is none: a claim's reach never changes. Thread-safe.
class ClaimSeal {
public:
    /// `secret_key` is the server's; any bytes.
    explicit ClaimSeal(std::string_view secret_key);

    /// Good for this claim only.
    std::string close(const ClaimReach& reach, const std::string& claim) const;
    /// Throws Error(InvalidArgument) if `sealed` is not what close() made for this claim. Of
    /// nothing it makes no network, and no tenant.
    ClaimReach open(const std::string& sealed, const std::string& claim) const;

private:
    const std::string key_;
};

}  // namespace hearth::broker
