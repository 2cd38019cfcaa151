#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/Handler.h"

namespace hearth::api {

/// The values of a pattern's `{name}` parts in one request, percent-decoded.
struct RouteParams {
    std::vector<std::pair<std::string, std::string>> values;

    /// The value of `{name}`; empty if the pattern has no such part.
    std::string param(std::string_view name) const;
};

using RouteHandler = std::function<Response(Request&, const RouteParams&)>;

/// One line of the table.
struct Route {
    enum class Kind { Literal, Param, Rest };
    struct Segment {
        Kind kind;
        std::string text;  ///< the literal, or the name of the part
    };

    std::string method;
    std::string pattern;
    RouteHandler handler;
    std::vector<Segment> segments;
};

/// A matched path.
struct RouteMatch {
    const Route* route = nullptr;
    RouteParams params;

    std::string param(std::string_view name) const { return params.param(name); }
};

/// A table of method and pattern. "/v1/pools/{pool}" matches segment by segment; a part takes
/// exactly one segment that is not empty, decoded separately, so an encoded slash stays inside it.
/// A last "{path...}" takes the whole rest, slashes included, at least the slash before it (so it
/// may be empty); the handler must refuse "..". A literal wins over a part, a part over the rest.
/// Filled before serving; then read by many threads.
class Router {
public:
    /// Throws std::invalid_argument for a malformed or repeated pattern.
    void add(std::string method, std::string pattern, RouteHandler handler);

    /// Finds the route of this method and raw (still encoded) path. HEAD falls back to GET.
    std::optional<RouteMatch> match(std::string_view method, std::string_view raw_path) const;
    /// The methods that the path answers, sorted; empty if there is no such path.
    std::vector<std::string> allowed(std::string_view raw_path) const;

    /// Calls the handler and names the route in the response. An unknown path throws
    /// Error(NotFound); a method that the path lacks gets 405 with Allow, OPTIONS 204 with Allow.
    Response handle(Request& request) const;

    const std::vector<Route>& routes() const { return routes_; }

private:
    std::vector<Route> routes_;  ///< most specific first
};

}  // namespace hearth::api
