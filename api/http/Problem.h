#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "base/Error.h"

namespace hearth::api {

/// The request that a problem belongs to.
struct ProblemContext {
    std::string instance;  ///< the path, as sent
    std::string request_id;
    std::string trace_id;
};
ProblemContext problemContext(const Request& request);

/// A failure that has no ErrorCode because only HTTP knows it (405, 408, 417, ...).
struct HttpProblem {
    int status = 400;
    std::string_view error_code;  ///< "METHOD_NOT_ALLOWED"
    std::string_view title;
    std::string message;
    bool retryable = false;
    std::optional<std::chrono::seconds> retry_after;
    std::string hint;
};

/// Makes RFC 9457 problem details as in docs/rest.md, with Retry-After if there is a delay and
/// WWW-Authenticate for 401.
Response problem(const Error& error, const ProblemContext& context);
Response problem(const HttpProblem& problem, const ProblemContext& context);

}  // namespace hearth::api
