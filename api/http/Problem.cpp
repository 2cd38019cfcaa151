#include "api/http/Problem.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/Json.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

// In the order of ErrorCode.
constexpr std::array<std::string_view, 21> kTitles{
    "The request is not valid",
    "Authentication is needed",
    "Not allowed",
    "Not found",
    "Conflicts with the present state",
    "The same request is still running",
    "It has ended",
    "A precondition does not hold",
    "The body is too large",
    "The idempotency key was used with another body",
    "The specification is not valid",
    "A quota is used up",
    "Too many requests",
    "No warm sandbox free",
    "Internal error",
    "Not supported",
    "The sandbox was lost",
    "The pool is degraded",
    "Not available now",
    "It took too long",
    "The disk is full",
};

std::string problemType(std::string_view code) {
    std::string type = "urn:hearth:" + toLower(code);
    for (char& c : type) {
        if (c == '_') c = '-';
    }
    return type;
}

struct Extra {
    const std::vector<FieldError>* fields = nullptr;
    std::string reason;
    std::string ended_at;
};

Response build(const HttpProblem& from, const ProblemContext& context, const Extra& extra) {
    Json body = Json::object();
    body["type"] = problemType(from.error_code);
    body["title"] = from.title;
    body["status"] = from.status;
    body["detail"] = from.message;
    if (!context.instance.empty()) body["instance"] = context.instance;
    body["errorCode"] = from.error_code;
    body["code"] = from.status;
    body["message"] = from.message;
    body["retryable"] = from.retryable;
    if (from.retry_after) body["retryAfterSeconds"] = from.retry_after->count();
    if (!from.hint.empty()) body["hint"] = from.hint;
    if (!extra.reason.empty()) body["reason"] = extra.reason;
    if (!extra.ended_at.empty()) body["endedAt"] = extra.ended_at;
    if (!context.request_id.empty()) body["requestId"] = context.request_id;
    if (!context.trace_id.empty()) body["traceId"] = context.trace_id;
    if (extra.fields != nullptr && !extra.fields->empty()) {
        Json& errors = body["errors"] = Json::array();
        for (const FieldError& field : *extra.fields) {
            errors.push_back({{"pointer", field.pointer}, {"reason", field.reason}});
        }
    }

    Response response;
    response.status = from.status;
    response.error_code = from.error_code;
    response.headers.add("Content-Type", "application/problem+json");
    if (from.status == 401) response.headers.add("WWW-Authenticate", "Bearer");
    if (from.retry_after) {
        response.headers.add("Retry-After", std::to_string(from.retry_after->count()));
    }
    response.body = dumpJson(body) + "\n";
    return response;
}

}  // namespace

ProblemContext problemContext(const Request& request) {
    return {request.rawPath(), request.id(), request.traceId()};
}

Response problem(const Error& error, const ProblemContext& context) {
    HttpProblem from;
    from.status = errorCodeStatus(error.code());
    from.error_code = errorCodeName(error.code());
    from.title = kTitles[static_cast<std::size_t>(error.code())];
    from.message = error.what();
    from.retryable = error.passes() && errorCodeRetryable(error.code());
    from.retry_after = error.retryAfter();
    // An answer that asks the client to come back also says when.
    if (!from.retry_after && error.passes() && (from.status == 429 || from.status == 503)) {
        from.retry_after = std::chrono::seconds(1);
    }
    from.hint = error.hint();
    return build(from, context, {&error.fields(), error.endedReason(), error.endedAt()});
}

Response problem(const HttpProblem& from, const ProblemContext& context) {
    return build(from, context, {});
}

}  // namespace hearth::api
