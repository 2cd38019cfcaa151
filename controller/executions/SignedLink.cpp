#include "controller/executions/SignedLink.h"

#include <nlohmann/json.hpp>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostToken = 16'384;
constexpr std::string_view kUse = "hearth signed link 1";

/// Signs with a key of its own, so that nothing signed for another use is ever a link.
std::string signatureOf(std::string_view secret_key, std::string_view payload) {
    return rawBytes(hmacSha256(rawBytes(hmacSha256(secret_key, kUse)), payload));
}

[[noreturn]] void refuse() {
    throw Error(ErrorCode::Forbidden, "this link was not signed by this server")
        .hint("Ask for a new one: POST /v1/workspaces/{workspace}/links");
}

}  // namespace

std::string linkName(std::string_view path) {
    // The last path component, with only characters that every URL and file system accepts.
    constexpr std::size_t kMost = 80;
    const std::size_t slash = path.rfind('/');
    std::string name;
    for (const char c : path.substr(slash == std::string_view::npos ? 0 : slash + 1)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        name.push_back(plain ? c : '_');
    }
    if (name.size() > kMost) name.erase(0, name.size() - kMost);
    return name.find_first_not_of('.') == std::string::npos ? "file" : name;
}

std::string linkPath(std::string_view secret_key, const SignedLink& link) {
    const std::string payload = dumpJson(Json{{"t", link.tenant},
                                              {"w", link.workspace},
                                              {"p", base64Encode(link.path)},
                                              {"a", link.artifact},
                                              {"e", link.expires_unix}});
    return "/v1/links/" + base64UrlEncode(payload) + "." +
           base64UrlEncode(signatureOf(secret_key, payload)) + "/" + linkName(link.path);
}

SignedLink readLink(std::string_view secret_key, std::string_view token, WallTime now) {
    const std::size_t dot = token.find('.');
    std::string payload;
    std::string signature;
    if (token.size() > kMostToken || dot == std::string_view::npos ||
        !base64UrlDecode(token.substr(0, dot), payload) ||
        !base64UrlDecode(token.substr(dot + 1), signature) ||
        !constantTimeEqual(signature, signatureOf(secret_key, payload))) {
        refuse();
    }
    const Json json = parseJson(payload);  // written by this server: the signature is valid
    SignedLink link;
    link.tenant = json.at("t").get<std::string>();
    link.workspace = json.at("w").get<std::string>();
    link.artifact = json.at("a").get<std::string>();
    link.expires_unix = json.at("e").get<std::int64_t>();
    if (!base64Decode(json.at("p").get<std::string>(), link.path)) refuse();
    if (toUnixMillis(now) >= link.expires_unix * 1000) {
        throw Error(ErrorCode::Gone, "this link has expired")
            .ended("expired", formatUnixMillis(link.expires_unix * 1000))
            .hint("Ask for a new one: POST /v1/workspaces/{workspace}/links");
    }
    return link;
}

}  // namespace hearth::controller
