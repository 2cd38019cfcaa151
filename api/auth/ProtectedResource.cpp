#include "api/auth/ProtectedResource.h"

#include <nlohmann/json.hpp>
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

}  // namespace

ProtectedResource::ProtectedResource(std::string url, std::vector<std::string> issuers)
    : url_(issuers.empty() ? "" : withoutSlash(std::move(url))), issuers_(std::move(issuers)) {}

std::optional<api::Response> ProtectedResource::answer(const api::Request& request) const {
    const bool named = request.path() == kPlace || request.path() == std::string(kPlace) + kMcp;
    if (url_.empty() || !named || request.method() != "GET") return std::nullopt;
    api::Response response;
    response.route = kPlace;
    response.headers.add("Content-Type", "application/json");
    response.headers.add("Cache-Control", "max-age=3600");
    response.body = dumpJson({{"resource", url_ + kMcp},
                              {"authorization_servers", issuers_},
                              {"bearer_methods_supported", Json::array({"header"})},
                              {"resource_name", "Hearth"}}) +
                    "\n";
    return response;
}

std::string ProtectedResource::challenge(bool wrong) const {
    if (url_.empty()) return "Bearer";
    return "Bearer resource_metadata=\"" + url_ + kPlace + kMcp + "\"" +
           (wrong ? ", error=\"invalid_token\"" : "");
}

}  // namespace hearth::auth
