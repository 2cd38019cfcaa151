#include "api/auth/ProtectedResource.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/Json.h"

namespace hearth::auth {
namespace {

constexpr const char* kPlace = "/.well-known/oauth-protected-resource";
constexpr const char* kMcp = "/mcp";

std::string withoutSlash(std::string url) {
    while (url.ends_with('/')) url.pop_back();
    return url;
}

std::string challengeOf(const std::string& url) {
    return url.empty() ? "Bearer" : "Bearer resource_metadata=\"" + url + kPlace + kMcp + "\"";
}

std::string documentOf(const std::string& url, const std::vector<std::string>& issuers) {
    return dumpJson({{"resource", url + kMcp},
                     {"authorization_servers", issuers},
                     {"bearer_methods_supported", Json::array({"header"})},
                     {"resource_name", "Hearth"}}) +
           "\n";
}

}  // namespace

ProtectedResource::ProtectedResource(std::string url, const std::vector<std::string>& issuers)
    : url_(issuers.empty() ? "" : withoutSlash(std::move(url))),
      missing_(challengeOf(url_)),
      wrong_(url_.empty() ? missing_ : missing_ + ", error=\"invalid_token\""),
      document_(documentOf(url_, issuers)) {}

std::optional<api::Response> ProtectedResource::answer(const api::Request& request) const {
    const std::string_view path = request.path();
    if (url_.empty() || !path.starts_with(kPlace) || request.method() != "GET") return std::nullopt;
    const std::string_view below = path.substr(std::string_view(kPlace).size());
    if (!below.empty() && below != kMcp) return std::nullopt;
    api::Response response;
    response.route = kPlace;
    response.headers.add("Content-Type", "application/json");
    response.headers.add("Cache-Control", "max-age=3600");
    response.body = document_;
    return response;
}

}  // namespace hearth::auth
