#include "api/http/Routes.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "api/http/Problem.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

/// "/a/b" is {"a", "b"}; "/a/" is {"a", ""}; "/" is {""}.
std::vector<std::string_view> split(std::string_view path) {
    std::vector<std::string_view> parts;
    if (path.empty() || path.front() != '/') return parts;
    path.remove_prefix(1);
    while (true) {
        const std::size_t slash = path.find('/');
        parts.push_back(path.substr(0, slash));
        if (slash == std::string_view::npos) return parts;
        path.remove_prefix(slash + 1);
    }
}

std::vector<Route::Segment> parsePattern(const std::string& pattern) {
    std::vector<Route::Segment> segments;
    for (const std::string_view part : split(pattern)) {
        if (!segments.empty() && segments.back().kind == Route::Kind::Rest) {
            throw std::invalid_argument("route with something after the rest: " + pattern);
        }
        if (part.size() > 2 && part.front() == '{' && part.back() == '}') {
            std::string_view name = part.substr(1, part.size() - 2);
            const bool rest = name.size() > 3 && name.ends_with("...");
            if (rest) name.remove_suffix(3);
            segments.push_back({rest ? Route::Kind::Rest : Route::Kind::Param, std::string(name)});
        } else {
            segments.push_back({Route::Kind::Literal, std::string(part)});
        }
    }
    if (segments.empty()) throw std::invalid_argument("route without a leading slash: " + pattern);
    return segments;
}

bool moreSpecific(const Route& a, const Route& b) {
    return std::lexicographical_compare(
        a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
        [](const Route::Segment& x, const Route::Segment& y) { return x.kind < y.kind; });
}

bool sameShape(const Route& a, const Route& b) {
    return a.method == b.method &&
           std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                      [](const Route::Segment& x, const Route::Segment& y) {
                          return x.kind == y.kind &&
                                 (x.kind != Route::Kind::Literal || x.text == y.text);
                      });
}

/// A literal is compared as sent: no literal of this server needs an escape.
bool matches(const Route& route, const std::vector<std::string_view>& parts) {
    for (std::size_t i = 0; i < route.segments.size(); ++i) {
        const Route::Segment& segment = route.segments[i];
        if (i >= parts.size()) return false;
        if (segment.kind == Route::Kind::Rest) return true;
        if (segment.kind == Route::Kind::Literal && segment.text != parts[i]) return false;
        if (segment.kind == Route::Kind::Param && parts[i].empty()) return false;
    }
    return parts.size() == route.segments.size();
}

std::optional<RouteParams> values(const Route& route, const std::vector<std::string_view>& parts) {
    RouteParams params;
    for (std::size_t i = 0; i < route.segments.size(); ++i) {
        const Route::Segment& segment = route.segments[i];
        if (segment.kind == Route::Kind::Literal) continue;
        std::string_view raw = parts[i];
        if (segment.kind == Route::Kind::Rest) {
            raw = {raw.data(), static_cast<std::size_t>(parts.back().data() + parts.back().size() -
                                                        raw.data())};
        }
        std::optional<std::string> decoded = percentDecode(raw);
        if (!decoded) return std::nullopt;
        params.values.emplace_back(segment.text, std::move(*decoded));
    }
    return params;
}

std::string join(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        if (!out.empty()) out.append(", ");
        out.append(word);
    }
    return out;
}

}  // namespace

std::string RouteParams::param(std::string_view name) const {
    for (const auto& [key, value] : values) {
        if (key == name) return value;
    }
    return {};
}

void Router::add(std::string method, std::string pattern, RouteHandler handler) {
    Route route{std::move(method), std::move(pattern), std::move(handler), {}};
    route.segments = parsePattern(route.pattern);
    for (const Route& other : routes_) {
        if (sameShape(route, other)) {
            throw std::invalid_argument("route stands twice: " + route.method + " " +
                                        route.pattern);
        }
    }
    routes_.insert(std::upper_bound(routes_.begin(), routes_.end(), route, moreSpecific),
                   std::move(route));
}

std::optional<RouteMatch> Router::match(std::string_view method, std::string_view raw_path) const {
    const std::vector<std::string_view> parts = split(raw_path);
    const auto find = [&](std::string_view wanted) -> std::optional<RouteMatch> {
        for (const Route& route : routes_) {
            if (route.method != wanted || !matches(route, parts)) continue;
            if (std::optional<RouteParams> params = values(route, parts)) {
                return RouteMatch{&route, std::move(*params)};
            }
        }
        return std::nullopt;
    };
    std::optional<RouteMatch> found = find(method);
    if (!found && method == "HEAD") found = find("GET");
    return found;
}

std::vector<std::string> Router::allowed(std::string_view raw_path) const {
    const std::vector<std::string_view> parts = split(raw_path);
    std::set<std::string> methods;
    for (const Route& route : routes_) {
        if (matches(route, parts)) methods.insert(route.method);
    }
    if (methods.empty()) return {};
    if (methods.contains("GET")) methods.insert("HEAD");
    methods.insert("OPTIONS");
    return {methods.begin(), methods.end()};
}

Response Router::handle(Request& request) const {
    if (const std::optional<RouteMatch> found = match(request.method(), request.rawPath())) {
        request.tookRoute(found->route->pattern);
        Response response = found->route->handler(request, found->params);
        if (response.route.empty()) response.route = found->route->pattern;
        return response;
    }
    const std::vector<std::string> methods = allowed(request.rawPath());
    if (methods.empty()) {
        throw Error(ErrorCode::NotFound, "there is nothing at this path")
            .hint("Check the path and its version; the paths are listed in /openapi.json");
    }
    Response response;
    if (request.method() == "OPTIONS") {
        response.status = 204;
    } else {
        HttpProblem refusal;
        refusal.status = 405;
        refusal.error_code = "METHOD_NOT_ALLOWED";
        refusal.title = "Method not allowed";
        refusal.message = "this path does not answer this method";
        refusal.hint = "Use one of: " + join(methods);
        response = problem(refusal, problemContext(request));
    }
    response.headers.add("Allow", join(methods));
    return response;
}

}  // namespace hearth::api
