#pragma once

#include <string>
#include <string_view>

#include "api/http/Handler.h"
#include "metrics/trace/Span.h"

namespace hearth::api {

/// A request's end, as the front knows it.
struct Answered {
    std::string_view method;  ///< one of a fixed set; "_OTHER" is any other
    std::string_view route;   ///< empty if no route took it
    std::string_view tenant;
    std::string_view parent;  ///< the caller's span
    TimePoint at;
};

/// The server's span of a request, after OpenTelemetry's semantic conventions for HTTP. It lacks
/// the parts that give a right: the query, and the path of a signed link.
metrics::Span requestSpan(const Request& request, const Response& response, const Answered& end);

}  // namespace hearth::api
