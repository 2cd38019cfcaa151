#include "api/http/RequestSpan.h"

#include "api/http/RequestFacts.h"

namespace hearth::api {
namespace {

constexpr int kServerError = 500;

}  // namespace

metrics::Span requestSpan(const Request& request, const Response& response, const Answered& end) {
    // An unknown method is "HTTP" in names, and "_OTHER" as an attribute.
    std::string name(end.method == "_OTHER" ? "HTTP" : end.method);
    if (!end.route.empty()) name.append(" ").append(end.route);
    const bool http11 = request.getVersion() == Poco::Net::HTTPMessage::HTTP_1_1;
    metrics::Span span{.context = request.trace(),
                       .parent = std::string(end.parent),
                       .name = std::move(name),
                       .kind = metrics::SpanKind::Server,
                       .start = request.startedAt(),
                       .end = end.at,
                       .attributes = {{"http.request.method", std::string(end.method)},
                                      {"url.scheme", request.secure() ? "https" : "http"},
                                      {"http.response.status_code", std::int64_t{response.status}},
                                      {"client.address", request.peer()},
                                      {"network.protocol.version", http11 ? "1.1" : "1.0"},
                                      {"hearth.request.id", request.id()}},
                       .failed = response.status >= kServerError};
    const auto add = [&](const char* key, std::string value) {
        if (!value.empty()) span.attributes.push_back({key, std::move(value)});
    };
    add("url.path", std::string(shownPath(request)));
    add("http.route", std::string(end.route));
    add("user_agent.original", request.header("User-Agent").value_or(""));
    add("hearth.tenant", std::string(end.tenant));
    add("hearth.error.code", std::string(response.error_code));
    if (!span.failed) return span;
    add("error.type", response.error_code.empty() ? std::to_string(response.status)
                                                  : std::string(response.error_code));
    return span;
}

}  // namespace hearth::api
