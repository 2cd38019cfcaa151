#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "controller/egress/policy/AllowList.h"

namespace hearth::broker {

/// A secret that requests to one destination carry without the sandbox ever having it: put in on
/// the way out, taken out of what comes back.
struct Credential {
    enum class Place { Header, Basic, Query };

    Destination destination;
    bool tls = true;  ///< false only where the declaration says `scheme: http`
    Place place = Place::Header;
    std::string name;    ///< of the header, of Basic's user, of the query's parameter
    std::string form;    ///< of the header's value, around "{}": "Bearer {}"
    std::string secret;  ///< its name in the SecretDirectory; empty where `value` is given
    std::string tenant;  ///< the secret's tenant; empty: the operator's
    std::string value;   ///< brought by a claim; never logged, shown, or stored in the clear

    bool operator==(const Credential&) const = default;
};

/// The declarer: a pool names secrets of the operator; a claim names those of its tenant, or
/// brings a value.
enum class CredentialSource { Pool, Claim };

/// Reads `{host, scheme, header | basic | query, template, secret | value}`. Faults are added to
/// `errors` under `pointer`; then the result must not be used.
Credential readCredential(const Json& json, CredentialSource source, const std::string& pointer,
                          std::vector<FieldError>& errors);
/// The same as it is shown, with every default and without a value.
Json credentialJson(const Credential& credential);
/// Whether both would set the same thing of the same requests.
bool collide(const Credential& a, const Credential& b);

/// The rule for secrets: 8 to 4,096 printable ASCII characters. Shorter ones could not be
/// distinguished from other text in answers.
bool isSecretValue(std::string_view text) noexcept;

}  // namespace hearth::broker
