#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "controller/egress/policy/AllowList.h"

namespace hearth::egress {

/// A secret that requests to one destination carry, without the sandbox ever having it: added on
/// the way out, removed from the answer.
struct Credential {
    enum class Place { Header, Basic, Query };

    Destination destination;
    bool tls = true;  ///< false only where the declaration says `scheme: http`
    Place place = Place::Header;
    std::string name;    ///< of the header, of the Basic user, or of the query parameter
    std::string form;    ///< the header's value, with "{}" in place of the secret: "Bearer {}"
    std::string secret;  ///< its name in the SecretDirectory; empty if `value` is given
    std::string tenant;  ///< the secret's tenant; empty: the operator's
    std::string value;   ///< brought by a claim; never logged, shown, or stored in the clear

    bool operator==(const Credential&) const = default;
};

/// The author of a declaration: a pool names the operator's secrets; a claim names its tenant's, or
/// brings a value.
enum class CredentialSource { Pool, Claim };

/// Reads `{host, scheme, header | basic | query, template, secret | value}`. Faults are added to
/// `errors` under `pointer`; then the result must not be used.
Credential readCredential(const Json& json, CredentialSource source, const std::string& pointer,
                          std::vector<FieldError>& errors);
/// Returns the credential as it is shown, with every default and without a value.
Json credentialJson(const Credential& credential);
/// Checks whether both would set the same part of the same requests.
bool collide(const Credential& a, const Credential& b);

/// The rule for secrets: 8 to 4,096 printable ASCII characters. Shorter ones could not be
/// distinguished from other text in answers.
bool isSecretValue(std::string_view text) noexcept;

}  // namespace hearth::egress
