#include "api/http/RequestFacts.h"

#include "base/http/Url.h"

namespace hearth::api {

std::string originOf(const Request& request) {
    const std::string host = request.header("Host").value_or("");
    if (host.empty()) return "";
    const bool secure =
        request.secure() || request.header("X-Forwarded-Proto").value_or("") == "https";
    return (secure ? "https://" : "http://") + host;
}

std::string_view shownPath(const Request& request) {
    constexpr std::string_view kLinks = "/v1/links";
    return request.path().starts_with(kLinks) ? std::string_view() : request.rawPath();
}

std::string mediaTypeOf(const Request& request) {
    const std::string type = request.header("Content-Type").value_or("");
    // Not Poco's parser, which takes "application/json x" for JSON.
    return toLower(trim(std::string_view(type).substr(0, type.find(';'))));
}

std::vector<Poco::Net::MediaType> acceptedTypes(const Request& request) {
    std::vector<std::string> elements;
    Request::splitElements(request.get("Accept", ""), elements);
    return {elements.begin(), elements.end()};
}

}  // namespace hearth::api
