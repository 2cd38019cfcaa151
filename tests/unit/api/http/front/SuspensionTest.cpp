#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "base/Error.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

/// An event that requests wait for and that the test triggers.
class Bell {
public:
    Response waitFor(std::function<Response()> resume, TimePoint until = TimePoint::max()) {
        Suspension suspension;
        suspension.subscribe = [this](std::function<void()> wake) {
            const std::lock_guard lock(mutex_);
            wakes_.push_back(std::move(wake));
            ++subscribed_;
            return std::shared_ptr<void>(nullptr, [this](void*) { --subscribed_; });
        };
        suspension.ready = [this] { return rung_.load(); };
        suspension.until = until;
        suspension.resume = std::move(resume);
        Response response;
        response.body = std::move(suspension);
        return response;
    }
    void ring() {
        rung_ = true;
        wake();
    }
    /// Wakes all requests, although their condition does not hold unless the bell has rung.
    void wake() {
        const std::lock_guard lock(mutex_);
        for (const auto& each : wakes_) each();
    }
    int subscribed() const { return subscribed_; }

private:
    std::mutex mutex_;
    std::vector<std::function<void()>> wakes_;
    std::atomic<bool> rung_{false};
    std::atomic<int> subscribed_{0};
};

}  // namespace

TEST_CASE("requests that wait hold no worker, and are answered on their connections",
          "[unit][http]") {
    Bell bell;
    FrontOptions options;
    options.workers = 2;
    Served served(
        [&](Request& request) {
            if (request.path() != "/wait") return text("now");
            const std::string body = request.readBody(100);
            return bell.waitFor([&request, body] { return text(request.id() + " " + body); });
        },
        options);
    std::vector<std::unique_ptr<Raw>> waiting;
    for (int i = 0; i < 20; ++i) {
        waiting.push_back(std::make_unique<Raw>(served));
        const std::string body = std::to_string(i);
        waiting.back()->send("POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body + get("/next"));
    }
    REQUIRE(eventually([&] { return bell.subscribed() == 20; }));
    HttpClient client(served.url());
    CHECK(client.get("/").body == "now");
    bell.wake();
    CHECK(client.get("/").body == "now");
    CHECK(bell.subscribed() == 20);
    bell.ring();
    for (int i = 0; i < 20; ++i) {
        const Answer answer = waiting[static_cast<std::size_t>(i)]->answer();
        CHECK(answer.body.substr(answer.body.find(' ') + 1) == std::to_string(i));
        CHECK(answer.has("X-Request-Id: " + answer.body.substr(0, answer.body.find(' '))));
        CHECK(waiting[static_cast<std::size_t>(i)]->answer().body == "now");
    }
    CHECK(bell.subscribed() == 0);
}

TEST_CASE("an event before the suspension is not missed", "[unit][http]") {
    Bell bell;
    bell.ring();
    Served served([&](Request&) { return bell.waitFor([] { return text("done"); }); });
    CHECK(HttpClient(served.url()).get("/").body == "done");
}

TEST_CASE("a waiting request goes on at its time, may wait again, and may fail", "[unit][http]") {
    Bell bell;
    std::atomic<int> rounds{0};
    Served served([&](Request&) {
        return bell.waitFor(
            [&bell, &rounds]() -> Response {
                ++rounds;
                return bell.waitFor(
                    [&rounds]() -> Response {
                        throw Error(ErrorCode::Gone,
                                    "after " + std::to_string(++rounds) + " rounds");
                    },
                    SystemClock().now() + Millis(1));
            },
            SystemClock().now() + Millis(1));
    });
    const ClientResponse answer = HttpClient(served.url()).get("/");
    CHECK(answer.status == 410);
    CHECK(answer.body.find("after 2 rounds") != std::string::npos);
}

TEST_CASE("a client that goes ends the waiting of its request", "[unit][http]") {
    Bell bell;
    std::atomic<bool> resumed{false};
    Served served([&](Request&) {
        return bell.waitFor([&] {
            resumed = true;
            return text("");
        });
    });
    {
        Raw raw(served);
        raw.send(get("/"));
        REQUIRE(eventually([&] { return bell.subscribed() == 1; }));
    }
    CHECK(eventually([&] { return bell.subscribed() == 0 && served.front->connections() == 0; }));
    bell.ring();
    CHECK_FALSE(resumed);
}

TEST_CASE("a server that stops answers suspended requests", "[unit][http]") {
    Bell bell;
    Served served([&](Request& request) {
        return bell.waitFor([&request] {
            return text(request.stopToken().stop_requested() ? "stopping" : "rung");
        });
    });
    Raw raw(served);
    raw.send(get("/"));
    REQUIRE(eventually([&] { return bell.subscribed() == 1; }));
    served.front->stop();
    CHECK(raw.answer().body == "stopping");
    bell.ring();  // late, after all clients have gone
}

TEST_CASE("a request beyond the limits of waiting requests is answered at once", "[unit][http]") {
    Bell bell;
    FrontOptions options;
    options.waits = 3;
    options.waits_of_tenant = 2;
    Served served(
        [&](Request& request) {
            request.actsFor(request.path(), "", {});
            Response response = bell.waitFor([] { return text("rung"); });
            if (request.path() == "/patient") {
                std::get<Suspension>(response.body).give_up = [] { return text("later", 202); };
            }
            return response;
        },
        options);
    std::vector<std::unique_ptr<Raw>> waiting;
    // One after the other: the last gets a place if no tenant holds more places than are free.
    for (const char* tenant : {"/greedy", "/greedy", "/patient"}) {
        waiting.push_back(std::make_unique<Raw>(served));
        waiting.back()->send(get(tenant));
        const int holding = static_cast<int>(waiting.size());
        REQUIRE(eventually([&] { return bell.subscribed() == holding; }));
    }
    const Answer refused = Raw(served).ask(get("/greedy"));
    CHECK(refused.status == 503);
    CHECK(refused.has("Retry-After: "));
    CHECK(Raw(served).ask(get("/patient")).status == 202);
    bell.ring();
    for (const auto& each : waiting) CHECK(each->answer().body == "rung");
    CHECK(Raw(served).ask(get("/greedy")).body == "rung");
}

TEST_CASE("the memory of a tenant's waiting requests has a bound", "[unit][http]") {
    Bell bell;
    FrontOptions options;
    options.waiting_bytes_of_tenant = 100;
    Served served(
        [&](Request& request) {
            request.actsFor(request.path(), "", {});
            const std::string body = request.readBody(100);
            return bell.waitFor([body] { return text(body); });
        },
        options);
    const auto post = [](const std::string& tenant, std::size_t size) {
        return "POST /" + tenant +
               " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(size) +
               "\r\n\r\n" + std::string(size, 'x');
    };
    Raw first(served);
    first.send(post("a", 60));
    REQUIRE(eventually([&] { return bell.subscribed() == 1; }));
    CHECK(Raw(served).ask(post("a", 60)).status == 503);
    Raw small(served);
    small.send(post("a", 40));
    Raw other(served);
    other.send(post("b", 60));
    REQUIRE(eventually([&] { return bell.subscribed() == 3; }));
    bell.ring();
    for (Raw* each : {&first, &small, &other}) CHECK(each->answer().status == 200);
    CHECK(Raw(served).ask(post("a", 100)).status == 200);
}

TEST_CASE("long answers that a tenant does not read have a bound", "[unit][http]") {
    FrontOptions options;
    options.unread_bytes_of_tenant = 20U << 20U;
    Served served(
        [&](Request& request) {
            request.actsFor(request.path(), "", {});
            return text(std::string(16U << 20U, 'x'));  // more than the buffers of sockets hold
        },
        options);
    Raw unread(served, 4096);
    unread.send(get("/a"));
    unread.until("\r\n\r\n");
    const Answer refused = Raw(served).ask(get("/a"));
    CHECK(refused.status == 429);
    CHECK(refused.has("Retry-After: "));
    CHECK(Raw(served).ask(get("/b")).body.size() == 16U << 20U);
    unread.take(16U << 20U);
    CHECK(eventually([&] { return Raw(served).ask(get("/a")).status == 200; }));
    {
        Raw leaves(served, 4096);
        leaves.send(get("/c"));
        leaves.until("\r\n\r\n");
    }
    CHECK(eventually([&] { return Raw(served).ask(get("/c")).status == 200; }));
}

TEST_CASE("requests that wait do not use up the connections of their address", "[unit][http]") {
    Bell bell;
    FrontOptions options;
    options.connections_per_address = 4;
    Served served(
        [&](Request& request) {
            if (request.path() != "/wait") return text("now");
            return bell.waitFor([] { return text("rung"); });
        },
        options);
    std::vector<std::unique_ptr<Raw>> waiting;
    for (int i = 0; i < 12; ++i) {
        waiting.push_back(std::make_unique<Raw>(served));
        waiting.back()->send(get("/wait"));
        REQUIRE(eventually([&] { return bell.subscribed() == i + 1; }));
    }
    CHECK(Raw(served).ask(get("/")).status == 200);
    bell.ring();
    for (const auto& each : waiting) CHECK(each->answer().body == "rung");
}
