#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::auth {

/// The algorithms (RFC 7518, section 3.1) that are accepted, whatever a token or a key says.
enum class SigningAlgorithm : std::uint8_t { Rs256, Es256 };
inline constexpr Texts<SigningAlgorithm, 2> kSigningAlgorithms{{"RS256", "ES256"}};

/// Gives a role to tokens with a claim.
struct RoleRule {
    std::string claim;  ///< a JSON pointer
    std::string value;  ///< the claim is this text, or a list that has it
    controller::Role role = controller::Role::User;
};

/// An OpenID Connect issuer whose tokens are accepted, and the meaning of their claims.
struct IssuerConfig {
    std::string issuer;  ///< as in the tokens' `iss`
    std::vector<std::string> audiences;
    std::vector<SigningAlgorithm> algorithms{SigningAlgorithm::Rs256, SigningAlgorithm::Es256};
    std::string tenant;         ///< for all of its tokens; empty: by the claim
    std::string tenant_claim;   ///< a JSON pointer
    std::string tenant_prefix;  ///< put before the claim's text
    std::optional<controller::Role> role = controller::Role::User;  ///< none: only by a rule
    std::vector<RoleRule> roles;  ///< the highest that matches counts
    std::string keys_url;         ///< URL of its JWKS; empty: by discovery
    std::string ca_file;          ///< its server's authority; empty: this machine's
    std::string token_file;       ///< a bearer token for reading the keys; empty: none is needed
};

/// Allows https, and plain HTTP only to this machine.
bool isSafeKeyUrl(const std::string& text);

/// Reads `{"issuers": [{"issuer", "audience", …}]}`. Throws Error(InvalidSpec) with all faulty
/// fields.
std::vector<IssuerConfig> parseIssuers(const Json& document);

}  // namespace hearth::auth
