#include "api/http/RequestSpan.h"

#include "api/http/RequestFacts.h"

namespace hearth::api {
namespace {

constexpr int kServerError = 500;
constexpr std::size_t kMostAttributes = 12;

}  // namespace

metrics::Span requestSpan(const Request& request, const Response& response, const Answered& end) {
    // For an unknown method, names have "HTTP", and the attribute has "_OTHER".
    std::string name(end.method == "_OTHER" ? "HTTP" : end.method);
    if (!end.route.empty()) name.append(" ").append(end.route);
    const bool http11 = request.getVersion() == Poco::Net::HTTPMessage::HTTP_1_1;
    metrics::Span span{.context = request.trace(),
                       .parent = std::string(end.parent),
                       .name = std::move(name),
                       .kind = metrics::SpanKind::Server,
                       .start = request.startedAt(),
                       .end = end.at,
                       .failed = response.status >= kServerError};
    // Added one by one: a list in braces would copy each text once more.
    span.attributes.reserve(kMostAttributes);
    span.attributes.push_back({"http.response.status_code", std::int64_t{response.status}});
    const auto add = [&](std::string_view key, std::string value) {
        if (!value.empty()) span.attributes.push_back({key, std::move(value)});
    };
    add("http.request.method", std::string(end.method));
    add("url.scheme", request.secure() ? "https" : "http");
    add("client.address", request.peer());
    add("network.protocol.version", http11 ? "1.1" : "1.0");
    add("hearth.request.id", request.id());
    add("url.path", std::string(shownPath(request)));
    add("http.route", std::string(end.route));
    add("user_agent.original", request.header("User-Agent").value_or(""));
    add(metrics::kTenantAttribute, std::string(end.tenant));
    add("hearth.error.code", std::string(response.error_code));
    if (!span.failed) return span;
    add("error.type", response.error_code.empty() ? std::to_string(response.status)
                                                  : std::string(response.error_code));
    return span;
}

}  // namespace hearth::api
