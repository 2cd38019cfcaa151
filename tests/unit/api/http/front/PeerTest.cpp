#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include "api/http/front/Peer.h"

using namespace hearth::api;

namespace {

Peer peer4(const char* text) {
    sockaddr_storage address{};
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    REQUIRE(::inet_pton(AF_INET, text, &v4.sin_addr) == 1);
    return peerOf(address);
}

Peer peer6(const char* text) {
    sockaddr_storage address{};
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    REQUIRE(::inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    return peerOf(address);
}

}  // namespace

TEST_CASE("an IPv4 address is counted for itself, also as IPv6 maps it", "[unit][http]") {
    CHECK(peer4("192.0.2.7").counted_as == "192.0.2.7");
    CHECK(peer6("::ffff:192.0.2.7").counted_as == "192.0.2.7");
    CHECK(peer4("127.9.0.1").counted_as != peer4("127.9.0.2").counted_as);
    CHECK(peer4("127.9.0.1").loopback);
    CHECK(peer6("::ffff:127.9.0.1").loopback);
    CHECK_FALSE(peer4("192.0.2.7").loopback);
}

TEST_CASE("an IPv6 address is counted with the others of its network", "[unit][http]") {
    const Peer one = peer6("2001:db8:1:2:3:4:5:6");
    CHECK(one.text == "2001:db8:1:2:3:4:5:6");
    CHECK(one.counted_as == "2001:db8:1:2::/64");
    CHECK(peer6("2001:db8:1:2:ffff::1").counted_as == one.counted_as);
    CHECK(peer6("2001:db8:1:3::1").counted_as != one.counted_as);
    CHECK(peer6("::1").loopback);
}
