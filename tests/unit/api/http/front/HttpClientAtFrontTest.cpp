#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "base/Error.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

/// Accepts connections one after another, answers each with fixed bytes and closes it.
class Scripted {
public:
    explicit Scripted(std::vector<std::string> answers, const std::string& unix_path = {})
        : fd_(::socket(unix_path.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (unix_path.empty()) {
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            socklen_t size = sizeof(address);
            ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size);
            ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
            url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/base/";
        } else {
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            unix_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
            ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
            url_ = "unix://" + unix_path;
        }
        ::listen(fd_.get(), 8);
        thread_ = std::jthread([this, answers = std::move(answers)] {
            for (const std::string& answer : answers) {
                const Fd client(::accept(fd_.get(), nullptr, nullptr));
                char bytes[4096];
                std::string seen;
                while (seen.find("\r\n\r\n") == std::string::npos) {
                    const ssize_t got = ::recv(client.get(), bytes, sizeof(bytes), 0);
                    if (got <= 0) break;
                    seen.append(bytes, static_cast<std::size_t>(got));
                }
                seen_ += seen;
                ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
                if (answer.empty()) {  // stay silent until the client gives up
                    while (::recv(client.get(), bytes, sizeof(bytes), 0) > 0) {
                    }
                }
            }
        });
    }
    const std::string& url() const { return url_; }
    std::string seen() {
        thread_.join();
        return seen_;
    }

private:
    Fd fd_;
    std::string url_;
    std::string seen_;
    std::jthread thread_;
};

}  // namespace

TEST_CASE("the client reads every way an answer can end", "[unit][http]") {
    Scripted server(
        {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n",
         "HTTP/1.0 200 OK\r\n\r\nto the end", "HTTP/1.1 204 No Content\r\n\r\n",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"});
    HttpClient client(server.url());
    CHECK(client.get("/x").body == "abc");
    CHECK(client.get("/x").body == "abcde");
    CHECK(client.get("/x").body == "to the end");
    CHECK(client.get("/x").status == 204);
    CHECK(client.get("/x").status == 201);
    CHECK(server.seen().find("GET /base/x HTTP/1.1\r\nHost: 127.0.0.1:") == 0);
}

TEST_CASE("the client talks over a Unix socket", "[unit][http]") {
    const std::string path = "/tmp/hearth-client-test-" + std::to_string(::getpid()) + ".sock";
    {
        Scripted server({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}, path);
        CHECK(HttpClient(server.url()).get("/version").body == "ok");
        CHECK(server.seen().find("Host: localhost\r\n") != std::string::npos);
    }
    ::unlink(path.c_str());
}

TEST_CASE("the client's errors tell a wrong URL, a lost server and a broken answer apart",
          "[unit][http]") {
    const auto code = [](const std::string& url, ClientOptions options = {}) {
        try {
            HttpClient(url, options).get("/");
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::Conflict;
    };
    CHECK(code("ftp://localhost") == ErrorCode::InvalidArgument);
    CHECK(code("https://127.0.0.1:1") == ErrorCode::Unavailable);
    CHECK(code("http://user@host") == ErrorCode::InvalidArgument);
    CHECK(code("http://localhost:x") == ErrorCode::InvalidArgument);
    CHECK(code("unix:///nowhere/at/all.sock") == ErrorCode::Unavailable);
    CHECK(code("http://127.0.0.1:1") == ErrorCode::Unavailable);
    for (const char* bad : {"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        INFO(bad);
        Scripted server({bad});
        CHECK(code(server.url()) == ErrorCode::Internal);
    }
    Scripted cut({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"});
    CHECK(code(cut.url()) == ErrorCode::Unavailable);
    Scripted chunks({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"});
    CHECK(code(chunks.url()) == ErrorCode::Unavailable);
    Scripted half({"HTTP/1.1 200 OK\r\nContent-Length: 1"});
    CHECK(code(half.url()) == ErrorCode::Unavailable);
    Scripted silent({""});
    ClientOptions hurried;
    hurried.timeout = Millis(30);
    CHECK(code(silent.url(), hurried) == ErrorCode::Deadline);
    ClientRequest forged;
    forged.headers = {{"X", "a\r\nY: b"}};
    Served served([](Request&) { return text(""); });
    HttpClient client(served.url());
    CHECK_THROWS_AS(client.request(forged), Error);
    forged = {};
    forged.target = "/a b";
    CHECK_THROWS_AS(client.request(forged), Error);
}

TEST_CASE("the client replaces a connection that the server has closed", "[unit][http]") {
    FrontOptions options;
    options.keep_alive = Millis(20);
    Served served([](Request& request) { return text(request.readBody(100)); }, options);
    HttpClient client(served.url());
    CHECK(client.post("/", "one").body == "one");
    CHECK(eventually([&] { return served.front->connections() == 0; }));
    CHECK(client.post("/", "two").body == "two");
}

TEST_CASE("the client streams a body up, counted or chunked", "[unit][http]") {
    Served served([](Request& request) {
        std::size_t total = 0;
        char bytes[10'000];
        while (const std::size_t got = request.readSome(bytes, sizeof(bytes))) total += got;
        return text(std::to_string(total) + (request.contentLength() ? " counted" : " chunked"));
    });
    HttpClient client(served.url());
    const auto upload = [&](bool counted) {
        std::size_t left = 1'000'000;
        ClientRequest request;
        request.method = "PUT";
        request.source = [&left](char* out, std::size_t size) {
            const std::size_t step = std::min(size, left);
            std::fill_n(out, step, 'u');
            left -= step;
            return step;
        };
        if (counted) request.source_length = left;
        return client.request(request).body;
    };
    CHECK(upload(true) == "1000000 counted");
    CHECK(upload(false) == "1000000 chunked");
}
