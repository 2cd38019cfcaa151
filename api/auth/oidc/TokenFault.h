#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth::auth {

/// The fault of a token, for the audit log: its sender learns only that it is refused.
enum class TokenFault : std::uint8_t {
    Malformed,
    Header,     ///< requires an extension, or contains its own key
    Algorithm,  ///< one that the issuer's tokens may not have
    Issuer,
    UnknownKey,
    Key,  ///< the key is for another algorithm
    Signature,
    Expired,
    NotYet,
    Audience,
    Subject,
    Tenant,  ///< its claims name none
    Role,    ///< its claims give none
};
inline constexpr Texts<TokenFault, 13> kTokenFaults{
    {"jwt_malformed", "jwt_header", "jwt_algorithm", "jwt_issuer", "jwt_unknown_key", "jwt_key",
     "jwt_signature", "jwt_expired", "jwt_not_yet", "jwt_audience", "jwt_subject", "jwt_tenant",
     "jwt_role"}};

}  // namespace hearth::auth
