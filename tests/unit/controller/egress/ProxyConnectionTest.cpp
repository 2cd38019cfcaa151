#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/Digest.h"
#include "controller/egress/ProxyConnection.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/egress/Outside.h"

// One tenant's connection to a server of the test on loopback, which the operator exempts.

namespace hearth::egress {
namespace {

/// A workspace whose network is Egress, and one connection in it.
struct Inside {
    explicit Inside(const std::vector<std::string>& allow, EgressLimits limits = {},
                    const std::vector<std::string>& exempt = {"127.0.0.0/8", "::1/128"})
        : dialer(DenySet({}, parseRanges(exempt, "exempt"))),
          egress({"ws_1", "default", "p"}, policy(allow), limits, log, metrics, clock, tracer) {}

    static NetworkPolicy policy(const std::vector<std::string>& allow) {
        NetworkPolicy out;
        out.mode = NetworkMode::Egress;
        out.lists.emplace_back(allow);
        return out;
    }
    /// Sends `text` and returns the answer. With `half`, the tenant then closes its sending side.
    std::string ask(const std::string& text, bool half = true) {
        int pair[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        const Fd tenant(pair[0]);
        std::thread server([&, end = Fd(pair[1])] {
            ProxyConnection(end.get(), facts, [this] { reset = true; }).run();
            ::shutdown(end.get(), SHUT_RDWR);
        });
        say(tenant.get(), text);
        if (half) ::shutdown(tenant.get(), SHUT_WR);
        const std::string out = receiveUntil(tenant.get(), "\x01never");
        server.join();
        return out;
    }
    EgressEntry latest() const { return egress.report().latest.at(0); }
    bool reset = false;  ///< true: the tenant must see that the last connection broke

    metrics::Log log{-1};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    SystemClock clock;
    Dialer dialer;
    WorkspaceEgress egress;
    ProxyFacts facts{.egress = egress, .dialer = dialer, .ca_file = {}, .clock = clock};
};

/// A mirror of an index that has one wheel, without its size.
struct WheelMirror {
    explicit WheelMirror(std::string bytes, std::string served = {})
        : content(std::move(bytes)), index([this, served](int fd) {
              const std::string head = receiveUntil(fd, "\r\n\r\n");
              const bool file = head.find(" /files/") != std::string::npos;
              asked += head.substr(0, head.find(' ')) + (file ? " file\n" : " page\n");
              const std::string page =
                  "<a href=\"/files/foo-1.0-py3-none-any.whl#sha256=" + toHex(sha256(content)) +
                  "\">foo</a>";
              const std::string& body = !file ? page : served.empty() ? content : served;
              say(fd,
                  "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
                  "Content-Length: " +
                      std::to_string(body.size()) + "\r\n\r\n");
              if (!head.starts_with("HEAD ")) say(fd, body);
          }) {
        char name[] = "/tmp/hearth-mirrored-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        folder = name;
        const std::string url = "http://" + index.authority() + "/simple/";
        fetcher.emplace(DenySet({}, {}), std::vector{index.authority()}, std::vector{url}, clock);
        cache.emplace(folder, 1U << 30U, [](const std::string&, const std::function<void()>& task) {
            task();
            return true;
        });
        mirror.emplace(MirrorSources{.pypi = url, .npm = {}, .hosts = {}}, "http://127.0.0.1:3128",
                       *fetcher, *cache, clock);
        inside.facts.mirror = &*mirror;
    }
    ~WheelMirror() { std::filesystem::remove_all(folder); }
    std::string ask(const std::string& method, const std::string& fields) {
        return inside.ask(method + " /pypi/files/foo/foo-1.0-py3-none-any.whl HTTP/1.1\r\n" +
                          "Host: 127.0.0.1\r\n" + fields + "\r\n");
    }
    std::string etag() const { return "\"sha256-" + toHex(sha256(content)) + '"'; }
    /// The head that answers have, with the lines that depend on the request.
    std::string head(const std::string& status, const std::string& lines) const {
        return "HTTP/1.1 " + status +
               "\r\nContent-Type: application/octet-stream\r\nETag: " + etag() +
               "\r\nAccept-Ranges: bytes\r\n" + lines + "\r\n";
    }

    const std::string content;
    std::string asked;  ///< of the index, one request a line
    Inside inside{std::vector<std::string>{}};
    SystemClock clock;
    std::string folder;
    std::optional<Fetcher> fetcher;
    std::optional<FileCache> cache;
    std::optional<PackageMirror> mirror;
    Outside index;
};

std::string smallHello(const std::string& name) {
    // A ClientHello with only the required fields and the server's name.
    const auto counted = [](const std::string& text, std::size_t bytes) {
        std::string out;
        for (std::size_t i = bytes; i > 0; --i) {
            out += static_cast<char>(text.size() >> (8U * (i - 1)) & 0xFFU);
        }
        return out + text;
    };
    std::string extensions;
    if (!name.empty()) {
        extensions = std::string("\0\0", 2) +
                     counted(counted(std::string("\0", 1) + counted(name, 2), 2), 2);
    }
    const std::string body = std::string("\x03\x03", 2) + std::string(32, 'r') + counted("", 1) +
                             counted(std::string("\x13\x01", 2), 2) +
                             counted(std::string("\0", 1), 1) + counted(extensions, 2);
    return std::string("\x16\x03\x01", 3) + counted(std::string("\x01", 1) + counted(body, 3), 2);
}

}  // namespace

TEST_CASE("a plain request is forwarded to its destination, and bytes after it are not",
          "[unit][egress]") {
    std::string seen;
    Outside outside([&](int fd) {
        seen = receiveUntil(fd, "body!");
        say(fd, "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok");
    });
    Inside inside({outside.authority()});
    const std::string answer = inside.ask(
        "POST http://" + outside.authority() +
        "/path?q=1 HTTP/1.1\r\nHost: other.example\r\n"
        "Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
        "X-Kept: yes\r\nContent-Length: 5\r\n\r\nbody!GET / HTTP/1.1\r\nHost: "
        "smuggled.example\r\n\r\n");
    CHECK(answer == "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok");
    CHECK(seen == "POST /path?q=1 HTTP/1.1\r\nHost: " + outside.authority() +
                      "\r\nX-Kept: yes\r\nContent-Length: 5\r\nConnection: close\r\n\r\nbody!");
    CHECK(inside.latest().kind == EgressKind::Http);
    CHECK(inside.latest().decision == "allowed");
    CHECK(inside.latest().destination == outside.authority());
    CHECK(inside.latest().received == answer.size());
    CHECK(inside.latest().sent == seen.size());
}

TEST_CASE("a broken answer does not look complete to the client", "[unit][egress]") {
    bool breaks = false;
    Outside outside([&](int fd) {
        receiveUntil(fd, "\r\n\r\n");
        say(fd, "HTTP/1.1 200 OK\r\n\r\na part");
        const linger at_once{1, 0};
        if (breaks) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    });
    const std::string request =
        "GET http://" + outside.authority() + "/ HTTP/1.1\r\nHost: x\r\n\r\n";
    SECTION("its length is told by its end, which came") {
        Inside inside({outside.authority()});
        CHECK(inside.ask(request, false) == "HTTP/1.1 200 OK\r\n\r\na part");
        CHECK_FALSE(inside.reset);
    }
    SECTION("the other side broke it") {
        breaks = true;
        Inside inside({outside.authority()});
        inside.ask(request, false);
        CHECK(inside.reset);
    }
    SECTION("the workspace may carry no more") {
        EgressLimits limits;
        limits.bytes = 10;
        Inside inside({outside.authority()}, limits);
        inside.ask(request, false);
        CHECK(inside.reset);
    }
}

TEST_CASE("a mirrored file is served in parts, and fetched once for all of them",
          "[unit][egress]") {
    std::string content(300'000, 'x');
    content.replace(0, 5, "begin").replace(299'995, 5, "1 end");
    WheelMirror mirrored(content);
    const std::string all = "Content-Length: 300000\r\n";
    CHECK(mirrored.ask("HEAD", "") == mirrored.head("200 OK", all));
    CHECK(mirrored.asked == "GET page\nHEAD file\n");
    CHECK(mirrored.ask("GET", "Range: bytes=-5\r\n") ==
          mirrored.head("206 Partial Content",
                        "Content-Length: 5\r\nContent-Range: bytes 299995-299999/300000\r\n") +
              "1 end");
    CHECK(mirrored.inside.latest().status == 206);
    CHECK(mirrored.inside.latest().received == 5);
    CHECK(mirrored.ask("GET", "Range: bytes=0-4\r\nIf-Range: " + mirrored.etag() + "\r\n") ==
          mirrored.head("206 Partial Content",
                        "Content-Length: 5\r\nContent-Range: bytes 0-4/300000\r\n") +
              "begin");
    const std::string whole = mirrored.head("200 OK", all) + content;
    CHECK(mirrored.ask("GET", "") == whole);
    CHECK(mirrored.ask("GET", "Range: bytes=0-4\r\nIf-Range: \"other\"\r\n") == whole);
    CHECK(mirrored.ask("GET", "Range: bytes=0-1,5-6\r\n") == whole);
    CHECK(mirrored.ask("GET", "Range: bytes=300000-\r\n") ==
          mirrored.head("416 Range Not Satisfiable",
                        "Content-Length: 0\r\nContent-Range: bytes */300000\r\n"));
    CHECK(mirrored.asked == "GET page\nHEAD file\nGET file\n");
    CHECK(mirrored.ask("HEAD", "Range: bytes=0-4\r\n") == mirrored.head("200 OK", all));
    CHECK(mirrored.asked == "GET page\nHEAD file\nGET file\n");  // the cache knows its size
}

TEST_CASE("no part of a mirrored file is complete before the whole file is verified",
          "[unit][egress]") {
    const std::string content(300'000, 'x');
    WheelMirror mirrored(content, std::string(299'999, 'x') + "y");
    const std::string answer = mirrored.ask("GET", "Range: bytes=0-99999\r\n");
    CHECK(answer.find("xxxx") == std::string::npos);
    CHECK(mirrored.inside.latest().decision == "hash_mismatch");
}

TEST_CASE("a Connection header cannot remove the length of a body", "[unit][egress]") {
    std::string seen;
    Outside outside([&](int fd) {
        seen = receiveUntil(fd, "body!");
        say(fd, "HTTP/1.1 200 OK\r\n\r\n");
    });
    Inside inside({outside.authority()});
    inside.ask("POST http://" + outside.authority() +
               "/ HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Content-Length\r\n"
               "Content-Length: 5\r\n\r\nbody!");
    CHECK(seen.find("\r\nContent-Length: 5\r\n") != std::string::npos);
}

TEST_CASE("a large body and a large answer pass, and are counted", "[unit][egress]") {
    const std::string body(3'000'000, 'b');
    Outside outside([&](int fd) {
        std::string head = receiveUntil(fd, "\r\n\r\n");
        std::size_t got = head.size() - head.find("\r\n\r\n") - 4;
        char piece[65'536];
        while (got < body.size()) {
            const ssize_t n = ::recv(fd, piece, sizeof(piece), 0);
            if (n <= 0) return;
            got += static_cast<std::size_t>(n);
        }
        say(fd, "HTTP/1.1 200 OK\r\n\r\n" + body);
    });
    Inside inside({outside.authority()});
    const std::string head = "PUT http://" + outside.authority() +
                             "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n";
    CHECK(inside.ask(head + body).size() == body.size() + 19);
    CHECK(inside.latest().received == body.size() + 19);
    CHECK(inside.latest().sent > body.size());
}

TEST_CASE("a destination that is not allowed is refused with a message, without a connection",
          "[unit][egress]") {
    Outside outside([](int) {});
    Inside elsewhere({"api.example.com"});
    std::string answer =
        elsewhere.ask("GET http://" + outside.authority() + "/ HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(answer.starts_with("HTTP/1.1 403 "));
    CHECK(answer.find("is not on the allow-list") != std::string::npos);
    CHECK(elsewhere.latest().decision == "not_allowed");
    answer = elsewhere.ask("CONNECT evil.example:443 HTTP/1.0\r\n\r\n");
    CHECK(answer.starts_with("HTTP/1.1 403 "));

    for (const std::string& host :
         {std::string("127.0.0.1"), std::string("localhost"), std::string("[::1]"),
          std::string("[::ffff:127.0.0.1]"), std::string("0.0.0.0"), std::string("0x7f.1"),
          std::string("2130706433"), std::string("127.1")}) {
        INFO(host);
        const std::string to = host + ":" + std::to_string(outside.port);
        for (const char* port_rule : {"*"}) {
            Inside every({port_rule + std::string(":") + std::to_string(outside.port),
                          "0.0.0.0/0:" + std::to_string(outside.port)},
                         {}, {});
            CHECK(every.ask("GET http://" + to + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
                      .starts_with("HTTP/1.1 40"));
            CHECK(every.ask("CONNECT " + to + " HTTP/1.1\r\nHost: x\r\n\r\n")
                      .starts_with("HTTP/1.1 40"));
        }
    }
    CHECK(outside.connections == 0);
}

TEST_CASE("a tunnel carries TLS to the name it was opened for, and nothing else",
          "[unit][egress]") {
    Outside outside([](int fd) {
        const std::string first = receiveUntil(fd, "more");
        say(fd, "got " + std::to_string(first.size()));
    });
    // "localhost" is on the list by name, and exempt by all addresses that it has here.
    const std::string authority = "localhost:" + std::to_string(outside.port);
    const std::string head = "CONNECT " + authority + " HTTP/1.1\r\nHost: x\r\n\r\n";
    const std::string established = "HTTP/1.1 200 Connection established\r\n\r\n";
    Inside inside({authority});
    const auto tunnel = [&](const std::string& bytes) { return inside.ask(head + bytes); };
    const std::string right = smallHello("localhost") + "more";
    CHECK(tunnel(right) == established + "got " + std::to_string(right.size()));
    CHECK(inside.latest().decision == "allowed");
    CHECK(
        tunnel(smallHello("LOCALHOST") + "more").ends_with("got " + std::to_string(right.size())));
    CHECK(tunnel(smallHello("evil.example") + "more") == established);
    CHECK(inside.latest().decision == "server_name");
    CHECK(tunnel(smallHello("") + "more") == established);
    CHECK(inside.latest().decision == "server_name");
    CHECK(tunnel("SSH-2.0-x\r\nmore") == established);
    CHECK(inside.latest().decision == "not_tls");
    CHECK(tunnel("") == established);
    CHECK(inside.latest().decision == "no_hello");
}

TEST_CASE("an index counts as failed after two failures in a row, until it answers or is unused",
          "[unit][egress]") {
    std::string status = "503 Busy";
    Outside index([&](int fd) {
        receiveUntil(fd, "\r\n\r\n");
        say(fd, "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    });
    ManualClock clock;
    const std::string base = "http://" + index.authority() + "/simple/";
    Fetcher fetcher(DenySet{}, {index.authority()}, {base}, clock);
    const auto ask = [&](const std::string& url) { fetcher.text({url, {}, 1'000}); };
    ask(base + "a/");
    CHECK(fetcher.failureOf(base).empty());
    ask("http://" + index.authority() + "/files/b");  // not part of the index
    CHECK(fetcher.failureOf(base).empty());
    ask(base + "c/");
    CHECK(fetcher.failureOf(base) == "the index answers 503");
    status = "404 Not Found";
    ask(base + "d/");
    CHECK(fetcher.failureOf(base).empty());
    status = "401 Unauthorized";
    ask(base + "e/");
    ask(base + "f/");
    CHECK(fetcher.failureOf(base) == "the index answers 401");
    clock.advance(std::chrono::minutes(11));
    CHECK(fetcher.failureOf(base).empty());
}

TEST_CASE("a write of a tenant reaches neither the mirror nor the index", "[unit][egress]") {
    const std::string page = "<a href=\"foo-1.0.tar.gz#sha256=" + std::string(64, 'a') + "\">x</a>";
    Outside index([&](int fd) {
        receiveUntil(fd, "\r\n\r\n");
        say(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: " +
                    std::to_string(page.size()) + "\r\nConnection: close\r\n\r\n" + page);
    });
    const test::TempDir folder;
    FileCache cache(folder.path(), 1'000'000,
                    [](const std::string&, const std::function<void()>& task) {
                        task();
                        return true;
                    });
    Inside inside({"*"});
    Fetcher fetcher(DenySet{}, {index.authority()}, {}, inside.clock);
    PackageMirror mirror(
        {.pypi = "http://" + index.authority() + "/simple/", .npm = {}, .hosts = {}},
        "http://127.0.0.1:3128", fetcher, cache, inside.clock);
    inside.facts.mirror = &mirror;
    const std::string written = "Host: x\r\nContent-Length: 4\r\n\r\nevil";
    for (const std::string path :
         {"/pypi/simple/foo/", "/pypi/files/foo/foo-1.0.tar.gz", "/npm/foo"}) {
        INFO(path);
        for (const std::string method : {"POST", "PUT", "DELETE", "PATCH"}) {
            CHECK(inside.ask(method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
                      .starts_with("HTTP/1.1 405 "));
            CHECK(inside.latest().decision == "read_only");
        }
        for (const std::string method : {"POST", "PUT", "GET"}) {
            CHECK(inside.ask(method + " " + path + " HTTP/1.1\r\n" + written)
                      .starts_with("HTTP/1.1 400 "));
            CHECK(inside.latest().decision == "read_only");
        }
    }
    CHECK(index.connections == 0);
    CHECK(std::filesystem::is_empty(folder.path()));
    // An allowed request gets the same page, from the index.
    CHECK(inside.ask("GET /pypi/simple/foo/ HTTP/1.1\r\nHost: x\r\n\r\n").find("foo-1.0.tar.gz") !=
          std::string::npos);
    CHECK(index.connections == 1);
}

TEST_CASE("rate and bytes of a workspace are bounded", "[unit][egress]") {
    Outside outside([](int fd) {
        receiveUntil(fd, "\r\n\r\n");
        say(fd, std::string(100'000, 'x'));
    });
    const std::string request =
        "GET http://" + outside.authority() + "/ HTTP/1.1\r\nHost: x\r\n\r\n";
    EgressLimits limits;
    limits.requests_per_second = 0.000001;
    limits.burst = 3;
    Inside rated({outside.authority()}, limits);
    CHECK(rated.ask(request).size() == 100'000);
    CHECK(rated.ask(request).size() == 100'000);
    CHECK(rated.ask(request).size() == 100'000);
    const std::string refused = rated.ask(request);
    CHECK(refused.starts_with("HTTP/1.1 429 "));
    CHECK(refused.find("Retry-After: 1") != std::string::npos);

    limits = {};
    limits.bytes = 150'000;
    Inside bounded({outside.authority()}, limits);
    CHECK(bounded.ask(request).size() == 100'000);
    CHECK(bounded.ask(request).size() < 100'000);  // bytes on their way still arrive
    CHECK(bounded.ask(request).starts_with("HTTP/1.1 403 "));
    CHECK(bounded.latest().decision == "bytes");
}

TEST_CASE("an invalid proxy request gets an error and ends the connection", "[unit][egress]") {
    Inside inside({"*"});
    for (const char* text :
         {"hello\n", "GET http://user@x.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET http:///x HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET ftp://x.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
          "GET http://x.example/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
          "GET http://x.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: "
          "chunked\r\n\r\n",
          "GET http://x.example/ HTTP/1.1\r\nX : y\r\nHost: x\r\n\r\n", "\r\n\r\n"}) {
        INFO(text);
        CHECK(inside.ask(text).starts_with("HTTP/1.1 400 "));
    }
    CHECK(inside.ask("CONNECT x.example HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 403 "));
    CHECK(
        inside.ask("GET /pypi/simple/x/ HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404 "));
    CHECK(
        inside
            .ask("POST http://x.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            .starts_with("HTTP/1.1 411 "));
    CHECK(inside.ask("GET http://x.example/ HTTP/1.1\r\n" + std::string(40'000, 'a'))
              .starts_with("HTTP/1.1 400 "));
    CHECK(inside.ask("").empty());
}

}  // namespace hearth::egress
