#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::auth {

/// A token in three parts (RFC 7519, JWS compact serialization), parsed but not yet verified.
struct Jwt {
    Json header;
    Json claims;
    std::string text;
};

/// Reads a token. Nullopt if a part is bad, is no JSON object, or has a duplicate key.
std::optional<Jwt> readJwt(std::string_view token);

/// Checks for three parts; the server's own tokens never have three.
bool looksLikeJwt(std::string_view token);

}  // namespace hearth::auth
