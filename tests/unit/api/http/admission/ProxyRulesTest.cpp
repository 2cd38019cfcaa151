#include <catch2/catch.hpp>

#include "api/http/admission/ProxyRules.h"
#include "base/Error.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;

namespace {

Served askedFor(std::vector<std::string> proxies) {
    FrontOptions options;
    options.trusted_proxies = std::move(proxies);
    return Served(
        [](Request& request) {
            return text(request.peer() + (request.peerIsLoopback() ? " local" : ""));
        },
        options);
}

std::string peerFor(const Served& served, const std::string& fields) {
    return Raw(served).ask("GET / HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n").body;
}

}  // namespace

TEST_CASE("X-Forwarded-For counts from trusted proxies only", "[unit][http]") {
    const Served plain = askedFor({"10.0.0.0/8"});
    CHECK(peerFor(plain, "X-Forwarded-For: 203.0.113.9\r\n") == "127.0.0.1 local");

    const Served proxied = askedFor({"127.0.0.0/8", "10.0.0.0/8", "fd00::/8"});
    CHECK(peerFor(proxied, "") == "127.0.0.1 local");
    CHECK(peerFor(proxied, "X-Forwarded-For: 203.0.113.9\r\n") == "203.0.113.9");
    // A value that the client wrote itself stands before the one that its proxy added.
    CHECK(peerFor(proxied, "X-Forwarded-For: 1.2.3.4, 203.0.113.9\r\n") == "203.0.113.9");
    CHECK(peerFor(proxied, "X-Forwarded-For: 1.2.3.4, 203.0.113.9, 10.1.2.3\r\n") == "203.0.113.9");
    CHECK(peerFor(proxied, "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: fd00::7\r\n") ==
          "203.0.113.9");
    CHECK(peerFor(proxied, "X-Forwarded-For: 2001:db8::1\r\n") == "2001:db8::1");
    CHECK(peerFor(proxied, "X-Forwarded-For: 1.2.3.4, nonsense, 10.1.2.3\r\n") == "10.1.2.3");
    // A client behind a proxy is not a local caller, whatever its header claims.
    CHECK(peerFor(proxied, "X-Forwarded-For: 127.0.0.1\r\n") == "127.0.0.1");
    CHECK(peerFor(proxied, "X-Forwarded-For: nonsense\r\n") == "127.0.0.1");
}

TEST_CASE("only valid addresses and networks can be trusted proxies", "[unit][http]") {
    for (const std::string bad : {"proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", ""}) {
        CHECK_THROWS_AS(ProxyRules({bad}), Error);
    }
    const ProxyRules rules({"10.0.0.0/9", "fd00::/8", "192.0.2.7"});
    CHECK(rules.trusts("10.127.0.1"));
    CHECK_FALSE(rules.trusts("10.128.0.1"));
    CHECK(rules.trusts("fdff::1"));
    CHECK_FALSE(rules.trusts("fe80::1"));
    CHECK(rules.trusts("192.0.2.7"));
    CHECK(rules.trusts("::ffff:192.0.2.7"));
    CHECK_FALSE(rules.trusts("192.0.2.8"));
}

TEST_CASE("a trusted proxy has no cap of connections", "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 2;
    options.trusted_proxies = {"127.0.0.1"};
    Served served([](Request&) { return text("hello"); }, options);
    std::vector<std::unique_ptr<Raw>> all;
    for (int i = 0; i < 6; ++i) {
        all.push_back(std::make_unique<Raw>(served));
        CHECK(all.back()->ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200);
    }
    for (const auto& each : all) {
        CHECK(each->ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200);
    }
}
