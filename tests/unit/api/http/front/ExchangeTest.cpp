#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Json.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

const std::string kPost = "POST /p HTTP/1.1\r\nHost: localhost\r\n";

Response echo(Request& request) {
    return text(request.readBody(100'000));
}

}  // namespace

TEST_CASE("a handler sees the request as it was sent", "[unit][http]") {
    std::string seen;
    Served served([&](Request& request) {
        seen = request.method() + "|" + request.path() + "|" + request.rawPath() + "|" +
               request.query("a").value_or("-") + "|" + request.query("b").value_or("-") + "|" +
               request.query("c").value_or("-") + "|" + request.header("x-thing").value_or("-") +
               "|" + request.peer() + "|" + (request.peerIsLoopback() ? "loop" : "far") + "|" +
               request.id().substr(0, 4) + "|" + request.traceId();
        return text("ok");
    });
    Raw raw(served);
    raw.ask(get("/a%2Fb/%C3%A4?a=1+2&b=%3D",
                "X-Thing: \t v \r\n"
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"));
    CHECK(seen ==
          "GET|/a/b/\xC3\xA4|/a%2Fb/%C3%A4|1 2|=|-|v|127.0.0.1|loop|req_|"
          "0af7651916cd43dd8448eb211c80319c");
    raw.ask(get("/", "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n"));
    CHECK(seen.find("|0000000000") == std::string::npos);
}

TEST_CASE("a connection is kept, and requests sent ahead are answered in order", "[unit][http]") {
    Served served([](Request& request) { return text(request.path() + request.readBody(10)); });
    Raw raw(served);
    std::string ahead;
    for (int i = 0; i < 50; ++i) {
        ahead += get("/" + std::to_string(i));
        ahead += "POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nxy";
    }
    raw.send(ahead);
    for (int i = 0; i < 50; ++i) {
        REQUIRE(raw.answer().body == "/" + std::to_string(i));
        REQUIRE(raw.answer().body == "/pxy");
    }
    CHECK(served.front->connections() == 1);
    Answer last = raw.ask(get("/", "Connection: close\r\n"));
    CHECK(last.has("Connection: close\r\n"));
    CHECK(raw.rest().empty());
}

TEST_CASE("HTTP/1.0 is closed unless it asks to be kept", "[unit][http]") {
    Served served(echo);
    Raw raw(served);
    const Answer kept =
        raw.ask("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    CHECK(kept.has("Connection: keep-alive\r\n"));
    CHECK(raw.ask("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n").has("Connection: close\r\n"));
    CHECK(raw.rest().empty());
}

TEST_CASE("a head that comes byte by byte, or with its body late, is read", "[unit][http]") {
    Served served(echo);
    Raw raw(served);
    for (const char c : kPost + "Content-Length: 5\r\n\r\nhello") raw.send({&c, 1});
    CHECK(raw.answer().body == "hello");
    raw.send(kPost + "Content-Length: 5\r\n\r\n");
    raw.send("again");
    CHECK(raw.answer().body == "again");
}

TEST_CASE("chunked bodies are read strictly", "[unit][http]") {
    Served served(echo);
    const std::string head = kPost + "Transfer-Encoding: Chunked\r\n\r\n";
    Raw raw(served);
    CHECK(raw.ask(head + "3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\nTrailer: v\r\n\r\n").body ==
          "abc0123456789");
    CHECK(raw.ask(head + "0\r\n\r\n").body.empty());
    raw.send(head);
    for (const char c : std::string("2\r\nhi\r\n0\r\n\r\n")) raw.send({&c, 1});
    CHECK(raw.answer().body == "hi");
    for (const char* bad :
         {"x\r\nabc\r\n0\r\n\r\n", "-1\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "\r\n",
          "3\r\nabcd\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "fffffffffffffffff\r\n",
          " 3\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "0\r\nbad trailer\r\n\r\n"}) {
        INFO(bad);
        Raw broken(served);
        broken.send(head + bad);
        const std::string all = broken.rest();
        CHECK(all.starts_with("HTTP/1.1 400 "));
        CHECK(all.find("Connection: close\r\n") != std::string::npos);
    }
    Raw endless(served);
    endless.send(head + "0\r\n");
    for (int i = 0; i < 500; ++i) endless.send("Trailer-" + std::to_string(i) + ": value\r\n");
    CHECK(endless.rest().starts_with("HTTP/1.1 400 "));
}

TEST_CASE("a body past the limit is 413 and never read whole", "[unit][http]") {
    Served served([](Request& request) { return text(request.readBody(8)); });
    Raw raw(served);
    const Answer declared = raw.ask(kPost + "Content-Length: 9\r\n\r\n123456789");
    CHECK(declared.status == 413);
    CHECK(declared.body.find("the request body is larger than 8 B\"") != std::string::npos);
    CHECK(raw.ask(kPost + "Content-Length: 8\r\n\r\n12345678").body == "12345678");
    const Answer counted =
        raw.ask(kPost + "Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n");
    CHECK(counted.status == 413);
    CHECK(raw.ask(get("/")).status == 200);
    // The body is too long to swallow: the answer still arrives, then the connection ends.
    Raw huge(served);
    huge.send(kPost + "Content-Length: 300000\r\n\r\n" + std::string(300'000, 'x'));
    const std::string all = huge.rest();
    CHECK(all.starts_with("HTTP/1.1 413 "));
    CHECK(all.find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("an unread body does not disturb the next request", "[unit][http]") {
    Served served([](Request&) { return text("unread"); });
    Raw raw(served);
    raw.send(kPost + "Content-Length: 50000\r\n\r\n" + std::string(50'000, 'x') + get("/"));
    CHECK(raw.answer().body == "unread");
    CHECK(raw.answer().body == "unread");
    raw.send(kPost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get("/"));
    CHECK(raw.answer().body == "unread");
    CHECK(raw.answer().body == "unread");
}

TEST_CASE("a client without access holds no worker, even if it neither sends nor reads",
          "[unit][http]") {
    FrontOptions options;
    options.workers = 1;
    Served served(
        [](Request& request) {
            if (request.path() == "/large") return text(std::string(8U << 20U, 'x'));
            if (request.path() == "/refused") throw Error(ErrorCode::Unauthenticated, "who?");
            return text("served");
        },
        options);
    std::vector<std::unique_ptr<Raw>> rude;
    for (int i = 0; i < 30; ++i) {
        for (const std::string path : {"/refused", "/large"}) {
            rude.push_back(std::make_unique<Raw>(served, 4096));
            rude.back()->send("POST " + path +
                              " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        }
    }
    Raw honest(served);
    honest.send(get("/"));
    CHECK(honest.answer().body == "served");
    CHECK(rude.front()->rest().find("Connection: close") != std::string::npos);
}

TEST_CASE("100-continue is sent when the body is wanted, else the connection ends",
          "[unit][http]") {
    Served served([](Request& request) {
        return request.path() == "/no" ? text("no", 403) : text(request.readBody(100));
    });
    Raw raw(served);
    raw.send(
        "POST /p HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\n"
        "Content-Length: 3\r\n\r\n");
    CHECK(raw.until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(raw.ask("abc").body == "abc");
    Raw refused(served);
    const Answer no = refused.ask(
        "POST /no HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        "Content-Length: 3\r\n\r\n");
    CHECK(no.status == 403);
    CHECK(no.has("Connection: close\r\n"));
    CHECK(Raw(served).ask(get("/", "Expect: 200-ok\r\n")).status == 417);
}

TEST_CASE("each exception of a handler becomes an answer", "[unit][http]") {
    Served served([](Request& request) -> Response {
        if (request.path() == "/error") {
            throw Error(ErrorCode::PoolExhausted, "pool python has no free sandbox")
                .hint("Wait")
                .retryAfter(std::chrono::seconds(3))
                .field("/pool", "is busy");
        }
        if (request.path() == "/gone") {
            throw Error(ErrorCode::Gone, "it has ended").ended("Idle", "2026-01-01T00:00:00Z");
        }
        if (request.path() == "/auth") throw Error(ErrorCode::Unauthenticated, "no token");
        if (request.path() == "/std") throw std::runtime_error("secret path /etc/x");
        if (request.path() == "/int") throw 7;
        Response response = text("x");
        if (request.path() == "/header") response.headers.add("X", "a\r\nSet-Cookie: b");
        if (request.path() == "/own") response.headers.add("content-length", "7");
        if (request.path() == "/status") response.status = 100;
        if (request.path() == "/writer") {
            response.body = BodyWriter([](const auto&) { throw Error(ErrorCode::NotFound, "no"); });
        }
        return response;
    });
    Raw raw(served);
    const Answer error = raw.ask(get("/error"));
    CHECK(error.status == 429);
    CHECK(error.has("Retry-After: 3\r\n"));
    CHECK(error.has("Content-Type: application/problem+json\r\n"));
    const Json problem = parseJson(error.body);
    CHECK(problem["type"] == "urn:hearth:pool-exhausted");
    CHECK(problem["instance"] == "/error");
    CHECK(problem["errorCode"] == "POOL_EXHAUSTED");
    CHECK(problem["code"] == 429);
    CHECK(problem["retryable"] == true);
    CHECK(problem["retryAfterSeconds"] == 3);
    CHECK(problem["hint"] == "Wait");
    CHECK(problem["errors"][0]["pointer"] == "/pool");
    CHECK(error.has("X-Request-Id: " + problem["requestId"].get<std::string>() + "\r\n"));
    CHECK(problem["traceId"].get<std::string>().size() == 32);

    const Json gone = parseJson(raw.ask(get("/gone")).body);
    CHECK(gone["reason"] == "Idle");
    CHECK(gone["endedAt"] == "2026-01-01T00:00:00Z");
    CHECK(raw.ask(get("/auth")).has("WWW-Authenticate: Bearer\r\n"));
    for (const char* path : {"/std", "/int", "/header", "/own", "/status"}) {
        INFO(path);
        const Answer internal = raw.ask(get(path));
        CHECK(internal.status == 500);
        CHECK(internal.body.find("secret") == std::string::npos);
        CHECK(!internal.has("Set-Cookie"));
        CHECK(parseJson(internal.body)["errorCode"] == "INTERNAL");
    }
    CHECK(raw.ask(get("/writer")).status == 404);
    CHECK(raw.ask(get("/fine")).body == "x");
}

TEST_CASE("a body or stream that throws no exception ends its connection, not the worker",
          "[unit][http]") {
    FrontOptions options;
    options.workers = 1;
    Served served(
        [](Request& request) {
            Response response = text("alive");
            if (request.path() == "/body") {
                response.body = BodyWriter([](const auto&) { throw 7; });
            }
            if (request.path() == "/stream") {
                response.body = StreamStarter([](const std::shared_ptr<Stream>&) { throw 7; });
            }
            return response;
        },
        options);
    Raw body(served);
    body.send(get("/body"));
    CHECK(body.rest().empty());
    Raw stream(served);
    stream.send(get("/stream", "Connection: close\r\n"));
    CHECK(stream.rest().ends_with("\r\n\r\n0\r\n\r\n"));
    CHECK(Raw(served).ask(get("/")).body == "alive");
    CHECK(served.front->streams() == 0);
}

TEST_CASE("HEAD has the length and no body; 204 has neither", "[unit][http]") {
    Served served([](Request& request) {
        Response response = text("four");
        if (request.path() == "/none") {
            response.status = 204;
            response.body = "";
        }
        if (request.path() == "/pieces") {
            response.length = 11;
            response.body = BodyWriter([](const auto& write) { write("never asked"); });
        }
        return response;
    });
    Raw raw(served);
    raw.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(raw.answer(true).has("Content-Length: 4\r\n"));
    raw.send("HEAD /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(raw.answer(true).has("Content-Length: 11\r\n"));
    CHECK(!raw.ask(get("/none")).has("Content-Length"));
    CHECK(raw.ask("OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n").body == "four");
}

TEST_CASE("a body written in pieces arrives whole, or visibly not", "[unit][http]") {
    const std::string piece(100'000, 'p');
    Served served([&](Request& request) {
        Response response = text("");
        if (request.path() == "/known") response.length = 3'000'000;
        if (request.path() == "/short") response.length = 3'000'001;
        response.body = BodyWriter([&](const auto& write) {
            for (int i = 0; i < 30; ++i) write(piece);
            if (request.path() == "/throws") throw std::runtime_error("lost");
        });
        return response;
    });
    HttpClient client(served.url());
    CHECK(client.get("/known").body.size() == 3'000'000);
    CHECK(client.get("/chunked").body.size() == 3'000'000);
    CHECK_THROWS_AS(client.get("/short"), Error);
    CHECK_THROWS_AS(client.get("/throws"), Error);
    Raw old(served);
    old.send("GET /old HTTP/1.0\r\nHost: localhost\r\n\r\n");
    const std::string all = old.rest();
    CHECK(all.find("chunked") == std::string::npos);
    CHECK(all.size() > 3'000'000);
    CHECK(served.front->connections() <= 1);
}

TEST_CASE("a client that stops reading frees its worker after the stall limit", "[unit][http]") {
    FrontOptions options;
    options.workers = 1;
    options.write_stall = Millis(400);
    const std::string large(32U << 20U, 'x');
    Served served(
        [&](Request& request) {
            Response response = text("");
            if (request.path() == "/whole") response.body = large;
            if (request.path() == "/pieces") {
                response.body = BodyWriter([&](const auto& write) { write(large); });
            }
            return response;
        },
        options);
    for (const char* path : {"/whole", "/pieces"}) {
        Raw stuck(served, 4096);
        stuck.send(get(path));
        CHECK(Raw(served).ask(get("/")).status == 200);
        CHECK(eventually([&] { return served.front->connections() == 0; }));
    }
    Served patient([&](Request&) { return text(large); });
    CHECK(HttpClient(patient.url()).get("/whole").body.size() == large.size());
}

TEST_CASE("each request is counted by route, method and code", "[unit][http]") {
    Served served([](Request& request) -> Response {
        if (request.path() == "/thrown") {
            request.tookRoute("/v1/{thing}");
            throw Error(ErrorCode::NotFound, "no");
        }
        return text("x");
    });
    Raw raw(served);
    raw.ask(get("/"));
    raw.ask("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    raw.ask(get("/thrown"));
    const std::string metrics = served.metrics.render();
    CHECK(metrics.find("code=\"200\",method=\"GET\",route=\"/test\"") != std::string::npos);
    CHECK(metrics.find("code=\"200\",method=\"_OTHER\",route=\"/test\"") != std::string::npos);
    CHECK(metrics.find("code=\"404\",method=\"GET\",route=\"/v1/{thing}\"") != std::string::npos);
}

TEST_CASE("a client that sends its whole body first can still read an early answer",
          "[unit][http]") {
    Served served([](Request& request) {
        char some[100];
        request.readSome(some, sizeof(some));
        throw Error(ErrorCode::DiskFull, "no room for that");
        return text("");
    });
    Raw raw(served);
    constexpr std::size_t kSize = 64U << 20U;  // more than all buffers in between hold
    raw.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(kSize) +
             "\r\n\r\n");
    const std::string piece(1U << 20U, 'x');
    std::size_t sent = 0;
    while (sent < kSize) {
        const ssize_t taken = ::send(raw.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
        if (taken <= 0) break;
        sent += static_cast<std::size_t>(taken);
    }
    CHECK(sent == kSize);
    const Answer answer = raw.answer();
    CHECK(answer.status == 507);
    CHECK(answer.has("Connection: close"));
    CHECK(answer.body.find("no room for that") != std::string::npos);
}
