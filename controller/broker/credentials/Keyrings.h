#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/broker/credentials/Keyring.h"

namespace hearth::broker {

/// Makes the keyrings of workspaces, and makes them again after a restart of the server: what only
/// this server may know travels to the sandbox's agent sealed, with the claim's note, and back.
/// Thread-safe.
class Keyrings {
public:
    /// `key` is the server's secret; any bytes.
    Keyrings(const std::string& secrets_directory, std::string_view key);

    struct Made {
        std::shared_ptr<const Keyring> keyring;  ///< null where there are no credentials
        std::string sealed;                      ///< for opened(); empty where nothing is kept
    };
    /// `claim` names the claim, which alone the sealed part is good for.
    Made make(std::vector<Credential> of_pool, const std::vector<Credential>& of_claim,
              const std::string& claim) const;
    /// From the pool's credentials as they are now and what make() sealed. Throws
    /// Error(InvalidArgument) if that is not what was sealed for this claim.
    std::shared_ptr<const Keyring> opened(std::vector<Credential> of_pool,
                                          const std::string& sealed,
                                          const std::string& claim) const;

private:
    const SecretDirectory secrets_;
    const std::string key_;
};

/// The credentials of a claim as `[{…}]`: those of its tenant, or with values. Throws
/// Error(InvalidArgument) with a field for each that is wrong, under `pointer`.
std::vector<Credential> readClaimCredentials(const Json& list, const std::string& tenant,
                                             const std::string& pointer);

}  // namespace hearth::broker
