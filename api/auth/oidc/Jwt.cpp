#include "api/auth/oidc/Jwt.h"

#include <cjose/base64.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/Error.h"

namespace hearth::auth {
namespace {

constexpr JsonLimits kLimits{.bytes = 8U << 10U, .depth = 8, .values = 2'000, .members = 200};

std::optional<Json> objectOf(std::string_view part) {
    cjose_err problem{};
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    if (part.empty() ||
        !::cjose_base64url_decode(part.data(), part.size(), &bytes, &size, &problem)) {
        return std::nullopt;
    }
    const std::unique_ptr<std::uint8_t, decltype(&std::free)> owned(bytes, std::free);
    try {
        Json value = parseJson({reinterpret_cast<const char*>(bytes), size}, kLimits);
        if (value.is_object()) return value;
    } catch (const Error&) {  // it is no valid token
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

bool looksLikeJwt(std::string_view token) {
    return std::count(token.begin(), token.end(), '.') == 2;
}

std::optional<Jwt> readJwt(std::string_view token) {
    if (!looksLikeJwt(token)) return std::nullopt;
    const std::size_t first = token.find('.');
    const std::size_t second = token.find('.', first + 1);
    std::optional<Json> header = objectOf(token.substr(0, first));
    std::optional<Json> claims = objectOf(token.substr(first + 1, second - first - 1));
    if (!header || !claims) return std::nullopt;
    return Jwt{std::move(*header), std::move(*claims), std::string(token)};
}

}  // namespace hearth::auth
