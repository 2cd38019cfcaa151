#include "api/http/RequestFacts.h"

#include "base/http/Url.h"

namespace hearth::api {

std::string originOf(const Request& request) {
    const std::string host = request.header("Host").value_or("");
    if (host.empty()) return "";
    const bool secure = request.header("X-Forwarded-Proto").value_or("") == "https";
    return (secure ? "https://" : "http://") + host;
}

std::string mediaTypeOf(const Request& request) {
    const std::string type = request.header("Content-Type").value_or("");
    return toLower(trim(std::string_view(type).substr(0, type.find(';'))));
}

}  // namespace hearth::api
