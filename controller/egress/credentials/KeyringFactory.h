#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "controller/egress/credentials/Keyring.h"

namespace hearth::egress {

/// Makes the keyrings of workspaces, and makes them again after a restart of the server. The caller
/// keeps the parts that cannot be made again, sealed (ClaimSeal). Thread-safe.
class KeyringFactory {
public:
    explicit KeyringFactory(const std::string& secrets_directory) : secrets_(secrets_directory) {}

    struct Made {
        std::shared_ptr<const Keyring> keyring;  ///< null if there are no credentials
        Json kept;  ///< for again(): values and a private key; null if there is nothing to keep
    };
    Made make(std::vector<Credential> of_pool, const std::vector<Credential>& of_claim) const;
    /// Makes a keyring from the pool's present credentials and from Made::kept of make(). Throws
    /// Error(InvalidArgument) or Json::exception if make() did not write `kept`.
    std::shared_ptr<const Keyring> again(std::vector<Credential> of_pool, const Json& kept) const;

    /// See SecretDirectory::lackOf().
    std::string lackOf(const Credential& credential) const { return secrets_.lackOf(credential); }

private:
    const SecretDirectory secrets_;
};

/// Reads a claim's credentials, `[{…}]`: secrets of its tenant, or values. Throws
/// Error(InvalidArgument) with a field for each wrong entry, under `pointer`.
std::vector<Credential> readClaimCredentials(const Json& list, const std::string& tenant,
                                             const std::string& pointer);

}  // namespace hearth::egress
