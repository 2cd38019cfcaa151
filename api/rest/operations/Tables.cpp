#include "api/rest/operations/Tables.h"

#include <charconv>

#include "api/http/Problem.h"
#include "base/http/RequestHead.h"
#include "base/http/Url.h"

namespace hearth::rest {

api::Response jsonResponse(const Json& document, int status) {
    api::Response response;
    response.status = status;
    response.headers.add("Content-Type", "application/json");
    response.body = dumpJson(document) + "\n";  // else curl's output runs into the prompt
    return response;
}

api::Response emptyResponse() {
    api::Response response;
    response.status = 204;
    return response;
}

api::Response wrongMedia(const api::Request& request, std::string title, std::string message,
                         std::string hint) {
    api::HttpProblem refusal;
    refusal.status = 415;
    refusal.error_code = "UNSUPPORTED_MEDIA_TYPE";
    refusal.title = std::move(title);
    refusal.message = std::move(message);
    refusal.hint = std::move(hint);
    return api::problem(refusal, api::problemContext(request));
}

void sayReplayed(api::Response& response) {
    response.headers.add("Idempotency-Replayed", "true");
}

void sayTimed(api::Response& response, const controller::ClaimLedger& claim) {
    response.headers.add("Server-Timing", controller::serverTiming(claim));
}

Parameter queryParameter(std::string name, Schema schema, std::string description) {
    return {Parameter::In::Query, std::move(name), std::move(schema), std::move(description)};
}

Parameter headerParameter(std::string name, Schema schema, std::string description) {
    return {Parameter::In::Header, std::move(name), std::move(schema), std::move(description)};
}

Parameter headerParameter(std::string name, std::string description) {
    return headerParameter(std::move(name), Schema::string().sizes(0, HeadLimits{}.line),
                           std::move(description));
}

std::vector<Parameter> pageParameters() {
    return {queryParameter("limit", Schema::integer(1, 1000).fallback(100), "Items of one page"),
            queryParameter("cursor", Schema::string().sizes(0, 1024),
                           "The `nextCursor` of the page before")};
}

Parameter idempotencyKeyParameter() {
    return headerParameter(
        "Idempotency-Key", Schema::string().sizes(1, 255),
        "Visible ASCII. A repeated request with the same key and body gets the first one's answer, "
        "with Idempotency-Replayed: true; 409 while the first is under way, 422 for another body");
}

std::optional<std::int64_t> ifMatch(const api::Request& request) {
    const std::optional<std::string> header = request.header("If-Match");
    if (!header) return std::nullopt;
    std::string_view tag = trim(*header);
    if (tag == "*") return std::nullopt;
    if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') {
        tag = tag.substr(1, tag.size() - 2);
    }
    std::int64_t version = 0;
    const auto [end, error] = std::from_chars(tag.data(), tag.data() + tag.size(), version);
    if (tag.empty() || error != std::errc{} || end != tag.data() + tag.size()) {
        throw Error(ErrorCode::InvalidArgument, "If-Match is not the ETag of a pool")
            .hint("Send the ETag of your last GET as it was, for example If-Match: \"7\"");
    }
    return version;
}

}  // namespace hearth::rest
