#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/TemporaryFile.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>

#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

namespace {

using PocoFunction = std::function<void(HTTPServerRequest&, HTTPServerResponse&)>;

/// A factory that knows only Poco.
class PocoFactory final : public Poco::Net::HTTPRequestHandlerFactory {
public:
    explicit PocoFactory(PocoFunction function) : function_(std::move(function)) {}

    Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override {
        return request.getURI() == "/none" ? nullptr : new One(function_);
    }

private:
    class One final : public Poco::Net::HTTPRequestHandler {
    public:
        explicit One(PocoFunction& function) : function_(function) {}
        void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
            function_(request, response);
        }

    private:
        PocoFunction& function_;
    };

    PocoFunction function_;
};

/// A front that serves a handler of Poco.
struct PocoServed : Served {
    explicit PocoServed(PocoFunction function) : Served([](Request&) { return text(""); }) {
        FrontOptions options;
        options.listen = "127.0.0.1:0";
        options.worker_stack = 1U << 20U;
        front = std::make_unique<Front>(options, new PocoFactory(std::move(function)), metrics, log,
                                        clock);
        front->start();
    }
};

std::string wholeOf(std::istream& in) {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a handler written for Poco is served", "[unit][http]") {
    Poco::TemporaryFile file;
    std::ofstream(file.path()) << "from a file";
    PocoServed served([&](HTTPServerRequest& request, HTTPServerResponse& response) {
        const std::string& uri = request.getURI();
        if (uri == "/buffer") return response.sendBuffer("bytes", 5);
        if (uri == "/file") return response.sendFile(file.path(), "text/x-file");
        if (uri == "/moved") return response.redirect("/there");
        if (uri == "/secret") return response.requireAuthentication("hearth");
        if (uri == "/throws") throw std::runtime_error("secret");
        if (uri == "/silent") return response.setStatus(HTTPServerResponse::HTTP_NO_CONTENT);
        response.setContentType("text/x-echo");
        response.setChunkedTransferEncoding(true);  // has no effect: the front frames it
        response.setContentLength(7);
        std::ostream& out = response.send();
        out << request.getMethod() << " " << uri << " " << request.get("x-name", "-") << " "
            << request.getContentType() << " " << request.clientAddress().host().toString() << " "
            << (request.serverAddress().port() == served.front->port()) << " "
            << request.serverParams().getMaxThreads() << ": " << wholeOf(request.stream());
        CHECK(response.sent());
        CHECK(&response == &request.response());
    });
    Raw raw(served);
    const Answer echo = raw.ask(
        "POST /echo?a=%20b HTTP/1.1\r\nHost: localhost\r\nX-Name: n\r\nContent-Type: a/b\r\n"
        "Content-Length: 4\r\n\r\nbody");
    CHECK(echo.status == 200);
    CHECK(echo.body == "POST /echo?a=%20b n a/b 127.0.0.1 1 16: body");
    CHECK(echo.has("Content-Type: text/x-echo\r\n"));
    CHECK(echo.has("X-Request-Id: req_"));
    CHECK(!echo.has("Transfer-Encoding"));
    CHECK(raw.ask("PUT /e HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
              .body.ends_with(": abcde"));
    CHECK(raw.ask(get("/buffer")).body == "bytes");
    const Answer sent = raw.ask(get("/file"));
    CHECK(sent.body == "from a file");
    CHECK(sent.has("Content-Type: text/x-file\r\n"));
    const Answer moved = raw.ask(get("/moved"));
    CHECK(moved.status == 302);
    CHECK(moved.has("Location: /there\r\n"));
    const Answer secret = raw.ask(get("/secret"));
    CHECK(secret.status == 401);
    CHECK(secret.has("WWW-Authenticate: Basic realm=\"hearth\"\r\n"));
    CHECK(raw.ask(get("/silent")).status == 204);
    CHECK(raw.ask(get("/none")).status == 501);
    const Answer failed = raw.ask(get("/throws"));
    CHECK(failed.status == 500);
    CHECK(failed.body.find("secret") == std::string::npos);
    raw.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(raw.answer(true).status == 200);
    CHECK(raw.ask(get("/buffer")).body == "bytes");
}

TEST_CASE("a Poco handler gets the body of a client that waits for 100-continue", "[unit][http]") {
    PocoServed served([](HTTPServerRequest& request, HTTPServerResponse& response) {
        if (request.getURI() == "/first") response.sendContinue();
        response.send() << wholeOf(request.stream());
    });
    for (const std::string path : {"/first", "/by-reading"}) {
        INFO(path);
        Raw raw(served);
        raw.send("PUT " + path +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
                 "Expect: 100-continue\r\n\r\n");
        CHECK(raw.until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
        CHECK(raw.ask("body").body == "body");
    }
}

TEST_CASE("a Poco handler never sees a broken body as complete", "[unit][http]") {
    PocoServed served([](HTTPServerRequest& request, HTTPServerResponse& response) {
        response.send() << "whole: " << wholeOf(request.stream());
    });
    const std::string head =
        "PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Poco's own stream takes all of these for an end of the body.
    for (const std::string body : {"zz\r\nhello\r\n0\r\n\r\n", "5\nhelloXX", "5\r\nhelloXX\r\n"}) {
        INFO(body);
        CHECK(Raw(served).ask(head + body).status == 400);
    }
    Raw cut(served);
    cut.send(head + "5\r\nhel");
    ::shutdown(cut.fd(), SHUT_WR);
    CHECK(cut.answer().status == 400);
}

TEST_CASE("a handler gets a header undecoded, as it was checked", "[unit][http]") {
    Served served([](Request& request) { return text(request.get("X-Word", "-")); });
    // Poco's own parser decodes the word, including the line feed.
    const std::string word = "=?UTF-8?Q?a=0D=0AEvil:_b?=";
    CHECK(Raw(served).ask(get("/", "X-Word: " + word + "\r\n")).body == word);
}
