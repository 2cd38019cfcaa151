#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::auth {

/// A token in three parts (RFC 7519, JWS compact serialization), read and believed by nobody yet.
struct Jwt {
    Json header;
    Json claims;
    std::string text;
};

/// Nullopt for what is no such token: bad parts, a key twice in an object, no JSON objects.
std::optional<Jwt> readJwt(std::string_view token);

/// Whether it has three parts, as none of our own tokens.
bool looksLikeJwt(std::string_view token);

}  // namespace hearth::auth
