#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/http/Routes.h"
#include "api/http/front/OperationsServer.h"
#include "base/Error.h"
#include "base/Json.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

RouteHandler named(const std::string& name) {
    return [name](Request&, const RouteParams& params) {
        std::string body = name;
        for (const auto& [key, value] : params.values) body += " " + key + "=" + value;
        Response response;
        response.body = body;
        return response;
    };
}

Router table() {
    Router router;
    router.add("GET", "/v1/w/{w}", named("get"));
    router.add("DELETE", "/v1/w/{w}", named("delete"));
    router.add("GET", "/v1/w/{w}/files/{path...}", named("file"));
    router.add("GET", "/v1/w/{w}/files", named("files"));
    router.add("GET", "/v1/w/special", named("special"));
    router.add("GET", "/", named("root"));
    return router;
}

}  // namespace

TEST_CASE("a path is matched segment by segment, the most specific route first", "[unit][http]") {
    const Router router = table();
    const auto pattern = [&](const char* method, const char* path) -> std::string {
        const auto found = router.match(method, path);
        return found ? found->route->pattern : "";
    };
    CHECK(pattern("GET", "/v1/w/special") == "/v1/w/special");
    CHECK(pattern("GET", "/v1/w/other") == "/v1/w/{w}");
    CHECK(pattern("HEAD", "/v1/w/other") == "/v1/w/{w}");
    CHECK(pattern("GET", "/v1/w/a/files") == "/v1/w/{w}/files");
    CHECK(pattern("GET", "/v1/w/a/files/") == "/v1/w/{w}/files/{path...}");
    CHECK(pattern("GET", "/v1/w/a/files/b/c") == "/v1/w/{w}/files/{path...}");
    CHECK(pattern("GET", "/") == "/");
    for (const char* nothing : {"/v1/w", "/v1/w/", "/v1/w/a/", "/v1/w/a/b", "/V1/w/a", "", "v1"}) {
        INFO(nothing);
        CHECK(pattern("GET", nothing).empty());
    }
    CHECK(router.match("GET", "/v1/w/a%2Fb")->param("w") == "a/b");
    CHECK(router.match("GET", "/v1/w/a/files/x%20y/..%2Fz")->param("path") == "x y/../z");
    CHECK(router.match("GET", "/v1/w/a")->param("other").empty());
    CHECK_FALSE(router.match("GET", "/v1/w/%zz"));
}

TEST_CASE("a malformed or doubled route is refused", "[unit][http]") {
    Router router = table();
    CHECK_THROWS_AS(router.add("GET", "no/slash", named("x")), std::invalid_argument);
    CHECK_THROWS_AS(router.add("GET", "/a/{p...}/b", named("x")), std::invalid_argument);
    CHECK_THROWS_AS(router.add("GET", "/v1/w/{other}", named("x")), std::invalid_argument);
}

TEST_CASE("unknown paths are 404 with a hint, other methods 405 with Allow", "[unit][http]") {
    const Router router = table();
    Served served([&](Request& request) { return router.handle(request); });
    HttpClient client(served.url());
    CHECK(client.get("/v1/w/x%2Fy").body == "get w=x/y");
    const ClientResponse missing = client.get("/nowhere");
    CHECK(missing.status == 404);
    CHECK(!parseJson(missing.body)["hint"].get<std::string>().empty());
    const ClientResponse wrong = client.post("/v1/w/x", "{}");
    CHECK(wrong.status == 405);
    CHECK(wrong.header("allow") == "DELETE, GET, HEAD, OPTIONS");
    CHECK(parseJson(wrong.body)["errorCode"] == "METHOD_NOT_ALLOWED");
    ClientRequest options;
    options.method = "OPTIONS";
    options.target = "/v1/w/x";
    const ClientResponse asked = client.request(options);
    CHECK(asked.status == 204);
    CHECK(asked.header("Allow") == "DELETE, GET, HEAD, OPTIONS");
    CHECK(served.metrics.render().find("route=\"/v1/w/{w}\"") != std::string::npos);
}

TEST_CASE("the operations listener answers probes and scrapes only", "[unit][http]") {
    metrics::Log log(-1);
    metrics::Metrics metrics;
    const SystemClock clock;
    std::atomic<bool> ready{false};
    OperationsServer operations("127.0.0.1:0", metrics, log, clock, [&] {
        return std::pair(ready.load(), std::string("images are being unpacked"));
    });
    operations.start();
    HttpClient client("http://127.0.0.1:" + std::to_string(operations.port()));
    CHECK(client.get("/healthz", {{"Origin", "null"}}).status == 200);
    const ClientResponse unready = client.get("/readyz");
    CHECK(unready.status == 503);
    CHECK(unready.body == "not ready: images are being unpacked\n");
    ready = true;
    CHECK(client.get("/readyz").status == 200);
    const ClientResponse scrape = client.get("/metrics");
    CHECK(scrape.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
    CHECK(scrape.body.find("hearth_http_request_duration_seconds") != std::string::npos);
    CHECK(client.get("/v1/pools").status == 404);
    CHECK(client.post("/metrics", "").header("Allow") == "GET, HEAD");
    operations.stop();
}
