#include <netinet/tcp.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "base/http/client/ClientConnection.h"
#include "tests/support/Listener.h"

using namespace hearth;
using namespace hearth::http;

namespace {

int option(const ClientConnection& connection, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    REQUIRE(::getsockopt(connection.fd(), level, name, &value, &size) == 0);
    return value;
}

/// A socket that listens on this machine, and its address.
struct Listening {
    Listening() {
        endpoint.name = endpoint.host = "127.0.0.1";
        endpoint.port = listener.port();
    }
    test::Listener listener;
    Endpoint endpoint;
};

}  // namespace

TEST_CASE("a connection detects a dead peer within the configured time", "[unit][http]") {
    Listening there;
    const ClientConnection usual(there.endpoint, {});
    CHECK(option(usual, SOL_SOCKET, SO_KEEPALIVE) == 0);
    there.endpoint.dead_peer = std::chrono::seconds(30);
    const ClientConnection watched(there.endpoint, {});
    CHECK(option(watched, SOL_SOCKET, SO_KEEPALIVE) == 1);
    CHECK(option(watched, IPPROTO_TCP, TCP_USER_TIMEOUT) == 30'000);
    const int idle = option(watched, IPPROTO_TCP, TCP_KEEPIDLE);
    const int probes = option(watched, IPPROTO_TCP, TCP_KEEPCNT);
    const int gap = option(watched, IPPROTO_TCP, TCP_KEEPINTVL);
    CHECK(idle + probes * gap <= 32);
}
