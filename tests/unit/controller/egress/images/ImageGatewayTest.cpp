#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <future>

#include "controller/egress/images/ImageGateway.h"
#include "tests/unit/controller/egress/Outside.h"

// A fetch is a client of loopback listeners, which the test sends over as the launcher does.

namespace hearth::egress {
namespace {

struct Listener {
    explicit Listener(std::uint16_t wanted = 0) {
        fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(wanted);
        // Another address of the loopback: as in a namespace, the registry's port is free there.
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
        socklen_t size = sizeof at;
        REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
        REQUIRE(::listen(fd.get(), 8) == 0);
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size);
        address = at;
    }
    std::string ask(const std::string& text) const {
        const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
                          sizeof address) == 0);
        say(client.get(), text);
        ::shutdown(client.get(), SHUT_WR);
        return receiveUntil(client.get(), "\x01never");
    }
    Fd fd;
    sockaddr_in address{};
};

void give(int socket, const std::vector<int>& fds) {
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
    REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

struct Gateway {
    explicit Gateway(OperatorProxy by = {}) : proxy(std::move(by)) {}

    /// The addresses that names resolve to, one after the other. The last one stays.
    std::vector<std::string> resolved{"127.0.0.1"};
    std::vector<std::string> exempt{};
    const OperatorProxy proxy;
    std::string names{};

    std::unique_ptr<ImageWay> open(const std::string& registry) {
        gateway.emplace(DenySet({}, parseRanges(exempt, "exempt")), proxy,
                        ImageWay::Ground{log, metrics, clock, tracer},
                        [this](const std::string& name) {
                            names += name + " ";
                            const IpAddress out = *IpAddress::parse(resolved.front());
                            if (resolved.size() > 1) resolved.erase(resolved.begin());
                            return std::vector<IpAddress>{out};
                        });
        return gateway->open("image", registry);
    }
    std::string refusal(const std::string& registry) {
        try {
            open(registry);
        } catch (const Refused& e) {
            return e.reason();
        }
        return {};
    }

    metrics::Log log{-1};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    SystemClock clock;
    std::optional<ImageGateway> gateway;
};

}  // namespace

TEST_CASE("a registry at a denied address is refused before anything is fetched",
          "[unit][egress]") {
    for (const char* address : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "::1",
                                "fd00::1", "::ffff:10.0.0.1", "100.64.0.1"}) {
        Gateway gateway;
        gateway.resolved = {address};
        INFO(address);
        CHECK(gateway.refusal("registry.example") == "denied_address");
        CHECK(gateway.refusal("registry.example:5000") == "denied_address");
        gateway.exempt = {address};
        CHECK(gateway.refusal("registry.example:5000").empty());
    }
    Gateway gateway;
    gateway.resolved = {"8.8.8.8"};
    CHECK(gateway.refusal("registry.example:5000").empty());
    CHECK(gateway.names == "registry.example ");
    // An address or localhost is named by the operator's pattern. Odd spellings are no hosts.
    for (const char* named : {"127.0.0.1:5000", "10.0.0.1", "localhost:5000"}) {
        CHECK(gateway.refusal(named).empty());
    }
    for (const char* odd : {"127.1:5000", "0x7f000001:5000", "2130706433:5000"}) {
        CHECK(gateway.refusal(odd) == "bad_destination");
    }
}

TEST_CASE("a fetch reaches public addresses and its own registry, nothing else", "[unit][egress]") {
    std::string seen;
    Outside registry([&](int fd) {
        seen = receiveUntil(fd, "\r\n\r\n");
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Outside other([](int) {});
    Gateway gateway;
    const auto way = gateway.open(registry.authority());
    const Listener proxy;
    const Listener direct(registry.port);
    give(way->socket(), {proxy.fd.get(), direct.fd.get()});
    const auto get = [](const std::string& authority) {
        return "GET http://" + authority + "/v2/ HTTP/1.1\r\nHost: x\r\n\r\n";
    };
    CHECK(proxy.ask(get(registry.authority())).ends_with("\r\n\r\nok"));
    CHECK(seen.starts_with("GET /v2/ HTTP/1.1\r\nHost: " + registry.authority() + "\r\n"));
    CHECK_FALSE(way->refused());
    CHECK(direct.ask("GET /mine HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok"));
    CHECK(seen.starts_with("GET /mine HTTP/1.1\r\n\r\n"));
    // The target of a redirect is checked. Another port of the registry is no exception.
    for (const std::string& to :
         {other.authority(), std::string("169.254.169.254"), std::string("10.0.0.1:5000"),
          std::string("rebind.example"), std::string("localhost:") + std::to_string(other.port),
          std::string("[::1]:80")}) {
        INFO(to);
        const std::string answer = proxy.ask(get(to));
        CHECK(answer.starts_with("HTTP/1.1 403 "));
        CHECK(answer.find("is at an address that images are not fetched from") !=
              std::string::npos);
        CHECK(way->refused().value().reason() == "denied_address");
    }
    CHECK(proxy.ask("CONNECT " + other.authority() + " HTTP/1.1\r\nHost: x\r\n\r\n")
              .starts_with("HTTP/1.1 403 "));
    CHECK(other.connections == 0);
    CHECK(registry.connections == 2);
}

TEST_CASE("a registry name that later resolves to a denied address is refused then",
          "[unit][egress]") {
    Outside registry([](int) {});
    Gateway gateway;
    gateway.resolved = {"8.8.8.8", "127.0.0.1"};
    const std::string name = "rebind.example:" + std::to_string(registry.port);
    const auto way = gateway.open(name);
    const Listener proxy;
    give(way->socket(), {proxy.fd.get()});
    CHECK(
        proxy.ask("CONNECT " + name + " HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 403 "));
    CHECK(registry.connections == 0);
}

TEST_CASE("the operator's proxy is used except for hosts that NO_PROXY names", "[unit][egress]") {
    const OperatorProxy some("http://proxy.example:8080",
                             "localhost, .internal.example,10.0.0.0/8,r.example:5000");
    const auto covers = [&](const OperatorProxy& proxy, const char* to) {
        return proxy.covers(*Destination::parse(to, 443));
    };
    CHECK(covers(some, "registry.example"));
    CHECK(covers(some, "r.example"));
    CHECK(covers(some, "xinternal.example"));
    CHECK(covers(some, "11.0.0.1"));
    for (const char* direct : {"localhost:5000", "a.internal.example", "10.1.2.3", "r.example:5000",
                               "a.r.example:5000"}) {
        CHECK_FALSE(covers(some, direct));
    }
    CHECK_FALSE(covers(OperatorProxy(), "registry.example"));
    CHECK_FALSE(covers(OperatorProxy("http://p:1", "*"), "registry.example"));
    std::promise<std::string> told;
    Outside upstream([&](int fd) {
        std::string all = receiveUntil(fd, "\r\n\r\n");
        say(fd, "HTTP/1.1 200 OK\r\n\r\n");
        all += receiveUntil(fd, "!");
        told.set_value(all);
        say(fd, "hello");
    });
    Gateway gateway(OperatorProxy("http://" + upstream.authority(), ""));
    CHECK(gateway.refusal("registry.example") == "denied_address");  // the name resolves here
    CHECK(gateway.refusal("10.0.0.1:5000").empty());
    const auto there = *Destination::parse("registry.example", 443);
    const Fd fd = gateway.proxy.connect(there);
    SocketStream stream(fd.get());
    stream.write("mine!", std::chrono::seconds(5));
    char answer[8] = {};
    CHECK(stream.read(answer, 5, std::chrono::seconds(5)) == 5);
    CHECK(std::string(answer) == "hello");
    const std::string seen = told.get_future().get();
    CHECK(seen.starts_with("CONNECT registry.example:443 HTTP/1.1\r\n"));
    CHECK(seen.ends_with("mine!"));
    CHECK_THROWS_AS(OperatorProxy("http://127.0.0.1:1", "").connect(there), Refused);
}

}  // namespace hearth::egress
