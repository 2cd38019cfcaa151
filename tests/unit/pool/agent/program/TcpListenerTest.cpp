#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <string>

#include "pool/agent/program/TcpListener.h"

// The agent is a program of its own, so its functions are in no library.
#include "pool/agent/program/TcpListener.cpp"

namespace {

sockaddr_storage addressOfText(const std::string& text) {
    sockaddr_storage address{};
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
        address.ss_family = AF_INET;
        four.sin_port = htons(4321);
    } else {
        REQUIRE(inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1);
        address.ss_family = AF_INET6;
        six.sin6_port = htons(4321);
    }
    return address;
}

}  // namespace

TEST_CASE("addresses of the loopback network are recognized as own", "[unit][agent][program]") {
    using hearth::agent::isOwnAddress;
    for (const char* own : {"127.0.0.1", "127.200.3.4", "::ffff:127.0.0.9"}) {
        INFO(own);
        CHECK(isOwnAddress(addressOfText(own)));
    }
    for (const char* other : {"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"}) {
        INFO(other);
        CHECK_FALSE(isOwnAddress(addressOfText(other)));
        CHECK(hearth::agent::addressText(addressOfText(other)) == other);
    }
}
