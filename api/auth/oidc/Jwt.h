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

/// Reads a token. Nullopt if a part is bad, is no JSON object, or has a key twice.
std::optional<Jwt> readJwt(std::string_view token);

/// Checks for three parts, which none of the server's own tokens has.
bool looksLikeJwt(std::string_view token);

}  // namespace hearth::auth
