#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "api/mcp/stdio/Upstream.h"
#include "tests/support/Listener.h"
#include "tests/support/Sockets.h"

namespace hearth::mcp {
namespace {

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

TEST_CASE("a stream whose stop was requested before its head came ends with the head",
          "[unit][mcp]") {
    const test::Listener listener;
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
        try {
            ended_by_client = test::readFrom(connection, 1).empty();
        } catch (const std::runtime_error&) {  // the client has not ended it in time
        }
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
