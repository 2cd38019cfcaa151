#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/Error.h"
#include "tests/support/Support.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

void raiseDescriptorLimit() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

TEST_CASE("1,000 silent and 1,000 idle connections cost four workers nothing", "[unit][http]") {
    raiseDescriptorLimit();
    FrontOptions options;
    options.workers = 4;
    options.first_byte = Millis(600'000);
    options.head_time = Millis(600'000);
    options.connections_per_address = 4'000;
    Served served([](Request&) { return text("here"); }, options);
    std::vector<Raw> crowd;
    crowd.reserve(2'000);
    for (int i = 0; i < 1'000; ++i) {
        crowd.emplace_back(served);
        if (i % 2 == 0) crowd.back().send("GET / HTTP/1.1\r\nHo");
        crowd.emplace_back(served);
        REQUIRE(crowd.back().ask(get("/")).body == "here");
    }
    CHECK(served.front->connections() == 2'000);
    HttpClient client(served.url());
    const TimePoint start = served.clock.now();
    for (int i = 0; i < 200; ++i) REQUIRE(client.get("/").body == "here");
    CHECK(toSeconds(served.clock.now() - start) < 2.0);
    // All of them are still served: idle ones with a request, half ones with the rest of theirs.
    crowd[0].send("st: localhost\r\n\r\n");
    CHECK(crowd[0].answer().body == "here");
    CHECK(crowd[1].ask(get("/")).body == "here");
}

TEST_CASE("many clients at once each get their own answers", "[unit][http]") {
    FrontOptions options;
    options.workers = 3;
    Served served(
        [](Request& request) { return text(request.path() + ":" + request.readBody(1'000'000)); },
        options);
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> clients;
        for (int c = 0; c < 12; ++c) {
            clients.emplace_back([&, c] {
                HttpClient client(served.url());
                for (int i = 0; i < 100; ++i) {
                    const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
                    const std::string body(static_cast<std::size_t>(i) * 500, 'b');
                    if (client.post(path, body).body != path + ":" + body) ++wrong;
                }
            });
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("stop under load finishes running requests and answers no later ones", "[unit][http]") {
    Served served([](Request& request) {
        if (request.path() != "/stream") return text("x");
        Response response = text("");
        response.body = StreamStarter([](const std::shared_ptr<Stream>& stream) {
            stream->send("begun");  // its producer never finishes it
        });
        return response;
    });
    std::atomic<bool> go_on{true};
    std::atomic<int> answered{0};
    std::atomic<int> strange{0};
    std::vector<std::jthread> clients;
    for (int c = 0; c < 8; ++c) {
        clients.emplace_back([&, c] {
            while (go_on) {
                try {
                    HttpClient client(served.url());
                    for (int i = 0; i < 20 && go_on; ++i) {
                        const int status = client.get("/").status;
                        if (status != 200 && status != 503) ++strange;
                        ++answered;
                    }
                    ClientRequest request;
                    request.target = "/stream";
                    int pieces = 0;
                    client.stream(request, [&](std::string_view) { return ++pieces < c; });
                } catch (const Error&) {
                    // Cut off or refused, because the server stops.
                }
            }
        });
    }
    REQUIRE(eventually([&] { return answered > 500; }));
    served.front->stop();
    go_on = false;
    clients.clear();
    CHECK(strange == 0);
    CHECK(served.front->connections() == 0);
    CHECK(served.front->streams() == 0);
    CHECK_THROWS(Raw(served));
    served.front->stop();
}

TEST_CASE("stop lets a running request answer, then cuts a stuck client", "[unit][http]") {
    FrontOptions options;
    options.drain = Millis(100);
    std::atomic<int> inside{0};
    Served served(
        [&](Request& request) {
            ++inside;
            if (request.path() == "/body") return text(request.readBody(1'000'000));
            while (!request.stopToken().stop_requested()) ::poll(nullptr, 0, 1);
            return text("finished");
        },
        options);
    Raw running(served);
    running.send(get("/run"));
    Raw stuck(served);
    stuck.send("POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc");
    REQUIRE(eventually([&] { return inside == 2; }));
    served.front->stop();
    const Answer answer = running.answer();
    CHECK(answer.body == "finished");
    CHECK(answer.has("Connection: close\r\n"));
    CHECK(served.front->connections() == 0);
}

TEST_CASE("a handler can ask whether its client has gone", "[unit][http]") {
    std::atomic<int> state{0};
    Served served([&](Request& request) {
        state = request.clientGone() ? 9 : 1;
        while (!request.clientGone() && !request.stopToken().stop_requested()) {
            ::poll(nullptr, 0, 1);
        }
        if (state == 1) state = 2;
        return text("");
    });
    Raw raw(served);
    raw.send(get("/"));
    REQUIRE(eventually([&] { return state == 1; }));
    raw.hangUp();
    CHECK(eventually([&] { return state == 2; }));
}

TEST_CASE("a front that cannot listen says so, and one never started stops", "[unit][http]") {
    Served served([](Request&) { return text(""); });
    FrontOptions options;
    options.listen = "127.0.0.1:" + std::to_string(served.front->port());
    Front second(options, served.handler, served.metrics, served.log, served.clock);
    const Error refused = hearth::test::errorOf([&] { second.start(); });
    CHECK(std::string(refused.what()) ==
          "cannot listen on " + options.listen + " (--listen): another program has that port");
    CHECK(refused.hint().find("--listen HOST:PORT") != std::string::npos);
    options.listen = "192.0.2.1:0";  // TEST-NET-1: no host has this address
    options.flag = "--ops-listen";
    Front elsewhere(options, served.handler, served.metrics, served.log, served.clock);
    CHECK(std::string(hearth::test::errorOf([&] { elsewhere.start(); }).what()) ==
          "cannot listen on 192.0.2.1:0 (--ops-listen): this machine does not have that address");
    second.stop();
    CHECK(served.front->address() == "127.0.0.1");
    CHECK_THROWS_AS(served.front->start(), std::logic_error);
}
