#include <array>
#include <atomic>
#include <catch2/catch.hpp>

#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace std::string_literals;

namespace {

Response hello(Request&) {
    return text("hello");
}

/// Clients with one connection each, from their own addresses: 127.9.0.1 and following.
class Strangers {
public:
    explicit Strangers(Served& served) : served_(served) {}
    Raw& connect() {
        all_.push_back(std::make_unique<Raw>(served_, 0, kFirst + in_addr_t(all_.size())));
        return *all_.back();
    }
    /// Connects new clients until all places are taken.
    void fill(std::size_t places) {
        while (served_.front->connections() < places) {
            const std::size_t before = served_.front->connections();
            connect();
            REQUIRE(eventually([&] { return served_.front->connections() > before; }));
        }
    }

private:
    static constexpr in_addr_t kFirst = 0x7F090001;
    Served& served_;
    std::vector<std::unique_ptr<Raw>> all_;
};

/// Waits until this many connections have been closed to make room; false if they are not.
bool shedInAll(Served& served, int count) {
    const std::string line = "{reason=\"shed_idle\"} " + std::to_string(count) + "\n";
    return eventually([&] { return served.metrics.render().find(line) != std::string::npos; });
}

}  // namespace

TEST_CASE("a request that two parsers could read in two ways is refused", "[unit][http]") {
    const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
    const std::vector<std::pair<const char*, std::string>> cases{
        {"no Host", "GET / HTTP/1.1\r\n\r\n"},
        {"no Host in 1.0", "GET / HTTP/1.0\r\n\r\n"},
        {"two Hosts", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"},
        {"blank before the colon", "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"},
        {"userinfo in Host", "GET / HTTP/1.1\r\nHost: localhost@evil\r\n\r\n"},
        {"list in Host", "GET / HTTP/1.1\r\nHost: localhost, evil\r\n\r\n"},
        {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {"bad port", "GET / HTTP/1.1\r\nHost: localhost:8x\r\n\r\n"},
        {"bare LF", "GET / HTTP/1.1\nHost: localhost\n\n"},
        {"bare LF inside", "GET / HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n"},
        {"bare CR", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n"},
        {"folded field", "GET / HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n folded\r\n\r\n"},
        {"NUL in a field", "GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"s},
        {"no colon", "GET / HTTP/1.1\r\nHost: localhost\r\nnothing\r\n\r\n"},
        {"empty name", "GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n"},
        {"leading empty line", "\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"CL and TE", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"},
        {"two CL", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
        {"CL list", post + "Content-Length: 3, 3\r\n\r\nabc"},
        {"CL -1", post + "Content-Length: -1\r\n\r\n"},
        {"CL +3", post + "Content-Length: +3\r\n\r\nabc"},
        {"CL hex", post + "Content-Length: 0x3\r\n\r\nabc"},
        {"CL empty", post + "Content-Length:\r\n\r\n"},
        {"CL beyond 64 bits", post + "Content-Length: 99999999999999999999\r\n\r\n"},
        {"TE gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
        {"TE identity", post + "Transfer-Encoding: identity\r\n\r\n"},
        {"two TE", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {"TE in 1.0",
         "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"method with a bracket", "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"absolute target", "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"authority target", "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {"bad escape", get("/a%zz")},
        {"cut escape", get("/a%4")},
        {"NUL in the path", get("/a%00b")},
        {"NUL in the query", get("/a?b=%00")},
        {"fragment", get("/a#b")},
        {"blank in the target", get("/a b")},
        {"non-ASCII target", get("/\xC3\xA4")},
        {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"},
        {"HTTP/0.9", "GET /\r\nHost: localhost\r\n\r\n"},
        {"lower-case version", "GET / http/1.1\r\nHost: localhost\r\n\r\n"},
    };
    Served served(hello);
    for (const auto& [name, bytes] : cases) {
        INFO(name);
        Raw raw(served);
        raw.send(bytes);
        const std::string all = raw.rest();
        CHECK(all.starts_with("HTTP/1.1 400 "));
        CHECK(all.find("Connection: close\r\n") != std::string::npos);
        CHECK(all.find("X-Request-Id: req_") != std::string::npos);
        CHECK(all.find("\"errorCode\":\"INVALID_ARGUMENT\"") != std::string::npos);
        CHECK(all.find("hello") == std::string::npos);
    }
    CHECK(served.metrics.render().find(
              "hearth_http_connections_refused_total{reason=\"bad_request\"} " +
              std::to_string(cases.size())) != std::string::npos);
    CHECK(Raw(served).ask(get("/")).body == "hello");
}

TEST_CASE("only the configured names pass as Host and Origin", "[unit][http]") {
    FrontOptions options;
    options.hosts = {"hearth.example"};
    options.origins = {"vscode-webview://abc"};
    Served served(hello, options);
    const auto status = [&](const std::string& host, const std::string& more = "") {
        return Raw(served).ask("GET / HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n").status;
    };
    for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8080", "[::1]",
                             "hearth.example", "Hearth.Example:443"}) {
        INFO(host);
        CHECK(status(host) == 200);
    }
    for (const char* host : {"evil.example", "localhost.evil.example", "localhost.", "127.0.0.2",
                             "[::2]", "127.0.0.1.nip.io", "0.0.0.0", "hearth.example.evil"}) {
        INFO(host);
        CHECK(status(host) == 403);
    }
    const std::vector<std::pair<std::string, std::string>> own{
        {"localhost", "http://localhost"},
        {"localhost", "HTTP://LOCALHOST:80"},
        {"localhost:80", "http://localhost"},
        {"localhost:8080", "http://localhost:8080"},
        {"127.0.0.1:8080", "http://127.0.0.1:8080"},
        {"[::1]:8080", "http://[::1]:8080"},
        {"hearth.example", "https://hearth.example"},  // a proxy in front speaks HTTPS
        {"hearth.example:443", "https://Hearth.Example"},
        {"localhost", "vscode-webview://abc"}};
    for (const auto& [host, origin] : own) {
        INFO(host << " " << origin);
        CHECK(status(host, "Origin: " + origin + "\r\n") == 200);
    }
    // A page of another port, name or scheme on this machine may belong to anybody.
    const std::vector<std::pair<std::string, std::string>> beside{
        {"localhost:8080", "http://localhost:3000"},
        {"localhost:8080", "http://localhost"},
        {"localhost:8080", "http://127.0.0.1:8080"},
        {"127.0.0.1:8080", "http://[::1]:8080"},
        {"127.0.0.1:8080", "https://127.0.0.1"},
        {"localhost", "http://localhost:8080"},
        {"localhost", "https://hearth.example"},
        {"hearth.example:80", "https://hearth.example"},
        {"localhost:8080", "https://localhost:8081"},
        {"localhost:8080", "http://localhost:808"}};
    for (const auto& [host, origin] : beside) {
        INFO(host << " " << origin);
        CHECK(status(host, "Origin: " + origin + "\r\n") == 403);
    }
    for (const char* origin :
         {"null", "", "http://evil.example", "http://localhost.evil.example",
          "http://localhost@evil.example", "http://evil.example/localhost", "http://localhost/",
          "http://localhost.", "file://", "vscode-webview://abcd", "localhost", "http://",
          "http://localhost:99999999", "ftp://localhost", "http://localhost http://evil.example"}) {
        INFO(origin);
        CHECK(status("localhost", "Origin: " + std::string(origin) + "\r\n") == 403);
    }
    CHECK(status("localhost", "Origin: http://localhost\r\nOrigin: http://localhost\r\n") == 400);
}

TEST_CASE("pages of an origin that an operator named may read answers, others may not",
          "[unit][http]") {
    FrontOptions options;
    options.origins = {"https://app.example"};
    Served served(hello, options);
    const auto ask = [&](const std::string& method, const std::string& more) {
        return Raw(served).ask(method + " / HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n");
    };
    const Answer named = ask("GET", "Origin: https://app.example\r\n");
    CHECK(named.body == "hello");
    CHECK(named.has("Access-Control-Allow-Origin: https://app.example\r\n"));
    CHECK(named.has("Mcp-Session-Id"));
    CHECK(named.has("Vary: Origin\r\n"));

    const Answer preflight = ask("OPTIONS",
                                 "Origin: https://app.example\r\n"
                                 "Access-Control-Request-Method: POST\r\n"
                                 "Access-Control-Request-Headers: authorization,mcp-param-x\r\n");
    CHECK(preflight.status == 204);
    CHECK(preflight.body.empty());
    CHECK(preflight.has("Access-Control-Allow-Headers: authorization,mcp-param-x\r\n"));
    CHECK(preflight.has("Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n"));

    CHECK(ask("GET", "Origin: http://localhost:3000\r\n").status == 403);
    for (const char* other : {"Origin: http://localhost\r\n", ""}) {
        CHECK_FALSE(ask("GET", other).has("Access-Control"));
    }
    CHECK(ask("OPTIONS", "Origin: https://evil.example\r\nAccess-Control-Request-Method: GET\r\n")
              .status == 403);
}

TEST_CASE("the Host check can be turned off", "[unit][http]") {
    FrontOptions options;
    options.check_host = false;
    Served served(hello, options);
    CHECK(Raw(served).ask("GET / HTTP/1.1\r\nHost: anything\r\nOrigin: null\r\n\r\n").status ==
          200);
}

TEST_CASE("a slow head is cut at its total deadline", "[unit][http]") {
    FrontOptions options;
    options.head_time = Millis(60);
    Served served(hello, options);
    Raw raw(served);
    raw.send("GET / HT");
    const std::string all = raw.rest();
    CHECK(all.starts_with("HTTP/1.1 408 "));
    CHECK(served.metrics.render().find("reason=\"head_timeout\"} 1") != std::string::npos);
}

TEST_CASE("a silent new connection and an idle one are closed without a word", "[unit][http]") {
    FrontOptions options;
    options.first_byte = Millis(50);
    options.keep_alive = Millis(50);
    Served served(hello, options);
    CHECK(Raw(served).rest().empty());
    Raw idle(served);
    CHECK(idle.ask(get("/")).status == 200);
    CHECK(idle.rest().empty());
    CHECK(eventually([&] { return served.front->connections() == 0; }));
}

TEST_CASE("a slow body is cut, and a small one before a worker sees it", "[unit][http]") {
    FrontOptions options;
    options.body_time = Millis(60);
    options.body_rate = 1U << 20U;
    Served served([](Request& request) { return text(request.readBody(1U << 20U)); }, options);
    const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
    Raw small(served);
    small.send(post + "Content-Length: 10\r\n\r\nabc");
    CHECK(small.rest().starts_with("HTTP/1.1 408 "));
    Raw big(served);
    big.send(post + "Content-Length: 60000\r\n\r\nabc");
    CHECK(big.rest().starts_with("HTTP/1.1 504 "));
    Raw chunked(served);
    chunked.send(post + "Transfer-Encoding: chunked\r\n\r\n5\r\nab");
    CHECK(chunked.rest().starts_with("HTTP/1.1 504 "));
}

TEST_CASE("new connections beyond the caps replace idle ones", "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 2;
    Served served(hello, options);
    Raw one(served);
    Raw two(served);
    CHECK(one.ask(get("/")).status == 200);
    CHECK(two.ask(get("/")).status == 200);
    // The worker of an idle connection may still linger for a moment.
    CHECK(eventually([&] { return Raw(served).ask(get("/")).status == 200; }));
    CHECK(one.rest().empty());
    CHECK(served.metrics.render().find("reason=\"shed_idle\"} ") != std::string::npos);
}

TEST_CASE("a client that does not read its answers loses its places", "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 2;
    Served served([](Request&) { return text(std::string(16U << 20U, 'x')); }, options);
    Raw one(served, 4096);
    Raw two(served, 4096);
    one.send(get("/"));
    two.send(get("/"));
    one.until("\r\n\r\n");
    two.until("\r\n\r\n");
    // Both now wait for their clients. Neither may keep a third client out.
    CHECK(eventually([&] {
        Raw three(served);
        three.send(get("/"));
        return three.until("\r\n").starts_with("HTTP/1.1 200 ");
    }));
    CHECK(served.metrics.render().find("reason=\"shed_idle\"} ") != std::string::npos);
}

TEST_CASE("a new connection outlives clients that do not read their answers", "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 2;
    options.unread = Millis(0);
    options.fresh = Millis(60'000);
    options.unread_bytes_of_tenant = UINT64_MAX;
    Served served([](Request&) { return text(std::string(16U << 20U, 'x')); }, options);
    const auto idle = [&] {
        const std::string text = served.metrics.render();
        const std::size_t at = text.find("\nhearth_http_workers_busy{");
        return text.substr(text.find("} ", at), 4).starts_with("} 0\n");
    };
    int served_newcomers = 0;
    for (int round = 0; round < 40; ++round) {
        Raw deaf(served, 4096);
        deaf.send(get("/"));
        deaf.until("\r\n\r\n");
        REQUIRE(eventually(idle));  // a connection that has a worker cannot be closed
        Raw newcomer(served);
        Raw next(served);  // one of the three has to be closed
        newcomer.send(get("/"));
        try {
            newcomer.until("\r\n");
            ++served_newcomers;
        } catch (const std::runtime_error&) {  // closed
        }
    }
    // Not in every round: connections of the round before may end late.
    CHECK(served_newcomers > 8);
}

TEST_CASE("clients of many addresses do not shut out a new one", "[unit][http]") {
    FrontOptions options;
    options.connections = 8;
    options.first_byte = Millis(600'000);
    options.fresh = Millis(600'000);
    Served served(hello, options);
    Strangers strangers(served);
    for (int round = 1; round <= 5; ++round) {
        strangers.fill(options.connections);
        {
            Raw newcomer(served);
            // The newcomer sorts before all strangers, and has as many connections as each of them.
            strangers.connect();
            REQUIRE(shedInAll(served, 2 * round));
            CHECK(newcomer.ask(get("/")).status == 200);
        }
        REQUIRE(eventually([&] { return served.front->connections() < options.connections; }));
    }
}

TEST_CASE("two new connections of an address outlive an idle one of another address",
          "[unit][http]") {
    FrontOptions options;
    options.connections = 8;
    options.first_byte = Millis(600'000);
    options.fresh = Millis(600'000);
    // Repeated, because the workers may still linger with all strangers at the first attempt.
    CHECK(eventually([&] {
        Served served(hello, options);
        Strangers strangers(served);
        for (int i = 0; i < 6; ++i) CHECK(strangers.connect().ask(get("/")).status == 200);
        Raw one(served);
        Raw two(served);
        REQUIRE(eventually([&] { return served.front->connections() == options.connections; }));
        strangers.connect();
        REQUIRE(shedInAll(served, 1));
        try {
            return one.ask(get("/")).status == 200 && two.ask(get("/")).status == 200;
        } catch (const std::runtime_error&) {  // closed
            return false;
        }
    }));
}

TEST_CASE("the address with most connections loses one, even where another's is older",
          "[unit][http]") {
    FrontOptions options;
    options.connections = 4;
    options.first_byte = Millis(600'000);
    options.fresh = Millis(0);
    Served served(hello, options);
    Strangers strangers(served);
    Raw& older = strangers.connect();
    Raw first(served);
    Raw second(served);
    Raw third(served);
    REQUIRE(eventually([&] { return served.front->connections() == options.connections; }));
    CHECK(strangers.connect().ask(get("/")).status == 200);
    CHECK(first.rest().empty());
    for (Raw* each : {&older, &second, &third}) CHECK(each->ask(get("/")).status == 200);
}

TEST_CASE("connections beyond the caps are refused with 503 while all others await an answer",
          "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 2;
    std::atomic<bool> go{false};
    std::atomic<int> inside{0};
    Served served(
        [&](Request&) {
            ++inside;
            while (!go.load()) ::poll(nullptr, 0, 1);
            return text("late");
        },
        options);
    Raw one(served);
    Raw two(served);
    one.send(get("/"));
    two.send(get("/"));
    CHECK(eventually([&] { return inside == 2; }));
    CHECK(Raw(served).rest().starts_with("HTTP/1.1 503 "));
    CHECK(served.metrics.render().find("reason=\"connections_per_address\"} 1") !=
          std::string::npos);
    go = true;
    CHECK(one.answer().body == "late");
}

TEST_CASE("a header field with a single value is refused if it stands twice", "[unit][http]") {
    Served served(hello);
    for (const std::string name : {"Authorization", "content-type", "IDEMPOTENCY-KEY", "Origin"}) {
        CAPTURE(name);
        Raw raw(served);
        CHECK(raw.ask(get("/", name + ": a\r\n" + name + ": a\r\n")).status == 400);
    }
}

TEST_CASE("requests beyond the queue are refused with a delay to retry after", "[unit][http]") {
    FrontOptions options;
    options.workers = 1;
    options.queue = 1;
    std::atomic<bool> go{false};
    std::atomic<int> inside{0};
    Served served(
        [&](Request& request) {
            ++inside;
            while (!go.load() && !request.stopToken().stop_requested()) ::poll(nullptr, 0, 1);
            return text("late");
        },
        options);
    Raw first(served);
    first.send(get("/"));
    REQUIRE(eventually([&] { return inside.load() == 1; }));
    Raw second(served);
    second.send(get("/"));
    Raw third(served);
    third.send(get("/"));
    // One of the two waits in the queue. The other is refused.
    std::array<pollfd, 2> entries{{{second.fd(), POLLIN, 0}, {third.fd(), POLLIN, 0}}};
    REQUIRE(::poll(entries.data(), 2, kPatienceMs) > 0);
    Raw& refused = entries[0].revents != 0 ? second : third;
    Raw& waiting = entries[0].revents != 0 ? third : second;
    const std::string answer = refused.rest();
    CHECK(answer.starts_with("HTTP/1.1 503 "));
    CHECK(answer.find("Retry-After: 1\r\n") != std::string::npos);
    go = true;
    CHECK(first.answer().status == 200);
    CHECK(waiting.answer().status == 200);
}

TEST_CASE("a head that is too large and a target that is too long have statuses of their own",
          "[unit][http]") {
    Served served([](Request&) { return text("never"); });
    const auto statusOf = [&](const std::string& head) { return Raw(served).ask(head).status; };
    CHECK(statusOf(get("/" + std::string(7'000, 'a'))) == 200);
    CHECK(statusOf(get("/" + std::string(9'000, 'a'))) == 414);
    CHECK(statusOf("GET /" + std::string(9'000, 'a')) == 414);  // and no end of the line
    CHECK(statusOf(get("/", "X-Large: " + std::string(17'000, 'a') + "\r\n")) == 431);
    std::string fields;
    for (int i = 0; i < 63; ++i) fields += "X-" + std::to_string(i) + ": 1\r\n";
    CHECK(statusOf(get("/", fields)) == 200);
    CHECK(statusOf(get("/", fields + "X-More: 1\r\n")) == 431);
    CHECK(statusOf("GET / HTTP/1.1\nHost: localhost\r\n\r\n") == 400);
    const Answer told = Raw(served).ask(get("/" + std::string(9'000, 'a')));
    CHECK(told.body.find("PAYLOAD_TOO_LARGE") != std::string::npos);
    CHECK(told.head.starts_with("HTTP/1.1 414 "));
}
