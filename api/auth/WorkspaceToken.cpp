#include "api/auth/WorkspaceToken.h"

#include <nlohmann/json.hpp>

#include "base/Digest.h"
#include "base/Ids.h"
#include "base/Json.h"

namespace hearth::auth {
namespace {

constexpr std::string_view kUse = "hearth workspace token 1";

/// Uses a separate key, so that no signature made for another use is ever a valid token.
std::string signatureFor(std::string_view secret_key, std::string_view payload) {
    return rawBytes(hmacSha256(rawBytes(hmacSha256(secret_key, kUse)), payload));
}

}  // namespace

std::string workspaceToken(std::string_view secret_key, const WorkspaceGrant& grant) {
    const std::string payload = dumpJson(Json{{"t", grant.tenant}, {"w", grant.workspace}});
    std::string token(kWorkspaceTokenPrefix);
    token.append(base64UrlEncode(payload)).append(".");
    return token.append(base64UrlEncode(signatureFor(secret_key, payload)));
}

std::optional<WorkspaceGrant> readWorkspaceToken(std::string_view secret_key,
                                                 std::string_view token) {
    if (secret_key.empty() || !token.starts_with(kWorkspaceTokenPrefix)) return std::nullopt;
    token.remove_prefix(kWorkspaceTokenPrefix.size());
    const std::size_t dot = token.find('.');
    std::string payload;
    std::string signature;
    if (dot == std::string_view::npos || !base64UrlDecode(token.substr(0, dot), payload) ||
        !base64UrlDecode(token.substr(dot + 1), signature) ||
        !constantTimeEqual(signature, signatureFor(secret_key, payload))) {
        return std::nullopt;
    }
    const Json json = parseJson(payload);  // valid: this server signed it
    return WorkspaceGrant{json.at("t").get<std::string>(), json.at("w").get<std::string>()};
}

}  // namespace hearth::auth
