#include <catch2/catch.hpp>

#include "base/Error.h"
#include "base/http/client/Proxy.h"
#include "base/http/client/ServerUrl.h"

using namespace hearth;
using namespace hearth::http;

TEST_CASE("a server's URL says whether it speaks TLS, and where", "[unit][http]") {
    const ServerUrl plain = ServerUrl::parse("http://127.0.0.1:8080/");
    CHECK((!plain.tls && plain.host == "127.0.0.1" && plain.port == 8080 && plain.path.empty()));
    const ServerUrl tls = ServerUrl::parse("https://hearth.example/below/");
    CHECK((tls.tls && tls.host == "hearth.example" && tls.port == 443 && tls.path == "/below"));
    CHECK(tls.authority == "hearth.example");
    CHECK(ServerUrl::parse("https://[::1]:8443").host == "::1");
    CHECK(ServerUrl::parse("unix:///run/hearth.sock").socket == "/run/hearth.sock");
    for (const char* wrong :
         {"localhost:1", "ftp://a", "https://", "https://a:b", "https://u@a", "unix://", "HTTPS"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(ServerUrl::parse(wrong), Error);
    }
}

TEST_CASE("the proxy comes from the environment, and is never used for this machine",
          "[unit][http]") {
    const ProxySettings settings = ProxySettings::from([](const std::string& name) {
        if (name == "HTTPS_PROXY") return std::optional<std::string>("http://u%40x:p@proxy:3128");
        if (name == "http_proxy") return std::optional<std::string>("small:81");
        if (name == "HTTP_PROXY") return std::optional<std::string>("http://capital:82");
        if (name == "NO_PROXY") return std::optional<std::string>("corp.example, .lan,ten:8080");
        return std::optional<std::string>();
    });
    const auto tls = settings.proxyFor(true, "hearth.example", 443);
    REQUIRE(tls);
    CHECK((tls->host == "proxy" && tls->port == 3128));
    CHECK(tls->authorization == "Basic dUB4OnA=");
    const auto plain = settings.proxyFor(false, "hearth.example", 80);
    REQUIRE(plain);
    CHECK((plain->host == "small" && plain->port == 81 && plain->authorization.empty()));
    for (const char* excepted : {"corp.example", "a.CORP.example", "x.lan", "127.0.0.1",
                                 "127.9.9.9", "::1", "localhost", "a.localhost"}) {
        CAPTURE(excepted);
        CHECK_FALSE(settings.proxyFor(true, excepted, 443));
        CHECK_FALSE(settings.proxyFor(false, excepted, 80));
    }
    CHECK(settings.proxyFor(true, "notcorp.example", 443));
    CHECK(settings.proxyFor(false, "ten", 80));
    CHECK_FALSE(settings.proxyFor(false, "ten", 8080));
    CHECK_FALSE(ProxySettings{}.proxyFor(true, "a", 443));
    CHECK_THROWS_AS((ProxySettings{"socks5://a:1", "", ""}.proxyFor(false, "a", 80)), Error);
    CHECK_FALSE((ProxySettings{"a:1", "", "*"}.proxyFor(false, "a", 80)));
}
