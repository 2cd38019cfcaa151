#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/egress/credentials/Keyring.h"

namespace hearth::broker {

/// Makes the keyrings of workspaces, and makes them again after a restart of the server. The parts
/// that cannot be made again are kept by the caller, sealed (ClaimSeal). Thread-safe.
class KeyringFactory {
public:
    explicit KeyringFactory(const std::string& secrets_directory) : secrets_(secrets_directory) {}

    struct Made {
        std::shared_ptr<const Keyring> keyring;  ///< null if there are no credentials
        Json kept;  ///< for again(): holds values and a private key; null where nothing is kept
    };
    Made make(std::vector<Credential> of_pool, const std::vector<Credential>& of_claim) const;
    /// From the pool's credentials as they are now and what make() gave to be kept. Throws
    /// Error(InvalidArgument) or Json::exception if that is not of its making.
    std::shared_ptr<const Keyring> again(std::vector<Credential> of_pool, const Json& kept) const;

    /// SecretDirectory::lackOf()
    std::string lackOf(const Credential& credential) const { return secrets_.lackOf(credential); }

private:
    const SecretDirectory secrets_;
};

/// The credentials of a claim as `[{…}]`: those of its tenant, or with values. Throws
/// Error(InvalidArgument) with a field for each that is wrong, under `pointer`.
std::vector<Credential> readClaimCredentials(const Json& list, const std::string& tenant,
                                             const std::string& pointer);

}  // namespace hearth::broker
