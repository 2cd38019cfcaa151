#pragma once

#include <cjose/jwk.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/auth/oidc/IssuerConfig.h"
#include "api/auth/oidc/Jwt.h"
#include "api/auth/oidc/TokenFault.h"
#include "base/Json.h"

namespace hearth::auth {

/// The public keys of an issuer (RFC 7517), by their ids. Thread-safe once made.
class SigningKeys {
public:
    /// Reads a JWKS. Skips keys that no algorithm here can use: other kinds, RSA below 2,048 bits,
    /// curves other than P-256, keys for encryption. Throws Error(InvalidArgument) if the document
    /// is no set of keys.
    static SigningKeys parse(const Json& set);

    /// Checks the signature with the key that the token names. The algorithm is the key's own, and
    /// the header must have the same one: a public key is never used as a shared secret. Nullopt:
    /// the signature is valid.
    std::optional<TokenFault> verify(const Jwt& token) const;
    std::size_t size() const noexcept { return keys_.size(); }

private:
    struct Key {
        SigningAlgorithm algorithm;
        std::shared_ptr<cjose_jwk_t> jwk;
    };
    static std::optional<Key> usable(const Json& jwk);

    std::map<std::string, Key> keys_;
};

}  // namespace hearth::auth
