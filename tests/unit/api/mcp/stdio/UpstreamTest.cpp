#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <thread>

#include "api/mcp/stdio/Upstream.h"
#include "tests/support/Sockets.h"

namespace hearth::mcp {
namespace {

/// Listens on a free port of loopback.
class Listener {
public:
    Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address_;
        auto* const generic = reinterpret_cast<sockaddr*>(&address_);
        REQUIRE(::bind(fd_.get(), generic, size) == 0);
        REQUIRE(::listen(fd_.get(), 1) == 0);
        REQUIRE(::getsockname(fd_.get(), generic, &size) == 0);
    }

    std::string url() const {
        return "http://127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
    }
    Fd accept() const { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

private:
    Fd fd_;
    sockaddr_in address_{};
};

/// Reads up to the empty line that ends a head.
std::string headFrom(const Fd& connection) {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
        const std::string byte = test::readFrom(connection, 1);
        if (byte.empty()) break;
        head += byte;
    }
    return head;
}

TEST_CASE("a stream that nobody wants any more ends with its head", "[unit][mcp]") {
    const Listener listener;
    Upstream upstream(listener.url(), "", "/mcp");
    bool ended_by_client = false;
    std::jthread server([&] {
        const Fd connection = listener.accept();
        std::string head = headFrom(connection);
        const auto length = std::stoul(head.substr(head.find("Content-Length: ") + 16));
        test::readFrom(connection, length);
        const std::string hello =
            R"({"jsonrpc":"2.0","id":"hearth-mcp-hello","result":{"protocolVersion":"2025-06-18"}})";
        test::writeTo(connection,
                      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                      "Mcp-Session-Id: s\r\nContent-Length: " +
                          std::to_string(hello.size()) + "\r\n\r\n" + hello);
        headFrom(connection);
        test::writeTo(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        ended_by_client = test::readFrom(connection, 1).empty();  // throws after its patience
    });
    std::stop_source stop;
    stop.request_stop();
    http::HttpClient client = upstream.connect();
    upstream.listen(client, stop.get_token(), [](const Json&) {});
    client.close();
    server.join();
    CHECK(ended_by_client);
}

}  // namespace
}  // namespace hearth::mcp
