#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::egress {

/// The part of a claim that the sandbox's agent keeps for the server but can neither read nor
/// change: the workspace's network, the credentials of its keyring, and its owner.
struct ClaimReach {
    NetworkMode mode = NetworkMode::None;
    /// Each list must allow a destination: the pool's, and the claim's if it has one.
    std::vector<std::vector<std::string>> allow;
    Json keys = {};  ///< KeyringFactory::Made::kept
    std::string tenant = {};
    std::string workspace = {};
};

/// Seals and opens a ClaimReach with a key that only the server has. A compromised agent cannot
/// replay an older seal of its claim, because a claim's seal never changes. Thread-safe.
class ClaimSeal {
public:
    /// `secret_key` is the server's; any bytes.
    explicit ClaimSeal(std::string_view secret_key);

    /// The result opens for this claim only.
    std::string close(const ClaimReach& reach, const std::string& claim) const;
    /// Throws Error(InvalidArgument) if `sealed` is not a result of close() for this claim.
    ClaimReach open(const std::string& sealed, const std::string& claim) const;
    /// Returns a proof that this server wrote `text`, which anyone may read, for this claim:
    /// HMAC-SHA256 in hexadecimal digits.
    std::string prove(std::string_view text, const std::string& claim) const;

private:
    const std::string key_;
    const std::string proof_key_;
};

}  // namespace hearth::egress
