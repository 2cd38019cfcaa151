#include "api/console/ConsolePages.h"

#include <string>
#include <string_view>

#include "api/console/ConsoleFile.h"
#include "api/http/RequestFacts.h"

namespace hearth::console {
namespace {

constexpr std::string_view kFolder = "/console/";
/// Allows no other origins, no script inside a page and no frame around it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

bool wantsHtml(const api::Request& request) {
    for (const Poco::Net::MediaType& type : api::acceptedTypes(request)) {
        if (type.matches("text", "html")) return true;
    }
    return false;
}

const ConsoleFile* fileFor(api::Request& request) {
    const std::string& path = request.path();
    if (path == "/") return wantsHtml(request) ? findConsoleFile("index.html") : nullptr;
    if (!path.starts_with(kFolder)) return nullptr;
    return findConsoleFile(std::string_view(path).substr(kFolder.size()));
}

}  // namespace

std::optional<api::Response> consolePage(api::Request& request) {
    if (request.method() != "GET" && request.method() != "HEAD") return std::nullopt;
    const ConsoleFile* file = fileFor(request);
    if (file == nullptr) return std::nullopt;
    api::Response response;
    response.route = request.path() == "/" ? "/" : "/console/{file}";
    request.tookRoute(response.route);
    response.headers = {
        {"Content-Security-Policy", kPolicy}, {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},   {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-cache"},        {"Vary", "Accept"},
        {"ETag", std::string(file->etag)}};
    if (request.header("If-None-Match").value_or("") == file->etag) {
        response.status = 304;
        return response;
    }
    response.headers.add("Content-Type", std::string(file->type));
    response.body = std::string(file->bytes);
    return response;
}

}  // namespace hearth::console
