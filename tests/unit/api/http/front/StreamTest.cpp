#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

/// Hands the streams that a front started to the test.
class Streams {
public:
    Response start(std::string keepalive = "",
                   std::chrono::seconds after = std::chrono::seconds(1)) {
        Response response = text("");
        response.keepalive = std::move(keepalive);
        response.keepalive_after = after;
        response.body = StreamStarter([this](std::shared_ptr<Stream> stream) {
            const std::lock_guard lock(mutex_);
            streams_.push_back(std::move(stream));
        });
        return response;
    }
    std::shared_ptr<Stream> next() {
        std::shared_ptr<Stream> found;
        const bool came = eventually([&] {
            const std::lock_guard lock(mutex_);
            if (streams_.empty()) return false;
            found = std::move(streams_.front());
            streams_.erase(streams_.begin());
            return true;
        });
        if (!came) throw std::runtime_error("no stream was started");
        return found;
    }

private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace

TEST_CASE("a stream arrives in order, whoever sends, and its connection is used again",
          "[unit][http]") {
    Streams streams;
    Served served(
        [&](Request& request) { return request.path() == "/s" ? streams.start() : text("plain"); });
    std::string got;
    HttpClient client(served.url());
    std::jthread producer([&] {
        const std::shared_ptr<Stream> stream = streams.next();
        for (int i = 0; i < 20'000; ++i) stream->send(std::to_string(i) + "\n");
        stream->finish();
        stream->send("too late");
    });
    ClientRequest request;
    request.target = "/s";
    const ClientResponse head = client.stream(request, [&](std::string_view piece) {
        got.append(piece);
        return true;
    });
    CHECK(head.status == 200);
    std::string expected;
    for (int i = 0; i < 20'000; ++i) expected += std::to_string(i) + "\n";
    CHECK(got == expected);
    CHECK(client.get("/").body == "plain");
    CHECK(served.front->connections() == 1);
    CHECK(served.front->streams() == 0);
}

TEST_CASE("a stream tells its producer when to pause and when to go on", "[unit][http]") {
    Streams streams;
    Served served([&](Request&) { return streams.start(); });
    Raw raw(served, 256 << 10);
    raw.send(get("/", "Connection: close\r\n"));
    raw.until("\r\n\r\n");
    const std::shared_ptr<Stream> stream = streams.next();
    std::atomic<int> drained{0};
    stream->onDrained([&] { ++drained; });
    std::size_t sent = 0;
    while (stream->pending() <= Stream::kHighWater) {
        REQUIRE(stream->send(std::string(64U << 10U, 'x')));
        sent += 64U << 10U;
    }
    CHECK(drained == 0);
    // Only until the server has no more to send: it may call back after its last byte has arrived.
    std::size_t got = 0;
    while (stream->pending() >= Stream::kLowWater) got += raw.take(4096).size();
    REQUIRE(eventually([&] { return drained == 1; }));
    stream->finish();
    got += raw.rest().size();
    CHECK(got > sent);
    CHECK(drained == 1);
}

TEST_CASE("streams of one tenant leave places for those of others", "[unit][http]") {
    Streams streams;
    FrontOptions options;
    options.streams = 4;
    options.streams_of_tenant = 2;
    Served served(
        [&](Request& request) {
            request.actsFor(request.path(), "", {});
            return streams.start();
        },
        options);
    std::vector<std::unique_ptr<Raw>> open;
    const auto status = [&](const std::string& tenant) {
        open.push_back(std::make_unique<Raw>(served));
        open.back()->send(get(tenant));
        const std::string head = open.back()->until("\r\n\r\n");
        return head.substr(9, 3);
    };
    CHECK(status("/red") == "200");
    const std::shared_ptr<Stream> first = streams.next();
    CHECK(status("/red") == "200");
    const std::shared_ptr<Stream> second = streams.next();
    CHECK(status("/red") == "503");
    CHECK(status("/blue") == "200");
    const std::shared_ptr<Stream> third = streams.next();
    first->finish();
    CHECK(open.front()->until("0\r\n\r\n").find("0\r\n") != std::string::npos);
    CHECK(status("/red") == "200");
    const std::shared_ptr<Stream> fourth = streams.next();
}

TEST_CASE("a client that hangs up ends the stream", "[unit][http]") {
    Streams streams;
    Served served([&](Request&) { return streams.start(); });
    Raw raw(served);
    raw.send(get("/"));
    raw.until("\r\n\r\n");
    const std::shared_ptr<Stream> stream = streams.next();
    std::atomic<int> closed{0};
    stream->onClosed([&] { ++closed; });
    CHECK(stream->send("data"));
    CHECK(raw.until("data\r\n") == "4\r\ndata\r\n");
    CHECK(!stream->closed());
    raw.hangUp();
    CHECK(eventually([&] { return closed == 1; }));
    CHECK(stream->closed());
    CHECK(!stream->send("more"));
    stream->finish();
    int at_once = 0;
    stream->onClosed([&] { ++at_once; });
    CHECK(at_once == 1);
    CHECK(eventually([&] { return served.front->connections() == 0; }));
    CHECK(served.front->streams() == 0);
}

TEST_CASE("a silent stream sends keepalives", "[unit][http]") {
    Streams streams;
    Served served([&](Request&) { return streams.start(": ka\n\n"); });
    Raw raw(served);
    raw.send(get("/"));
    CHECK(raw.until(": ka\n\n\r\n").ends_with("6\r\n: ka\n\n\r\n"));
    streams.next()->finish();
    CHECK(raw.until("0\r\n\r\n").ends_with("0\r\n\r\n"));
}

TEST_CASE("a client that stops reading is cut once its queue is high", "[unit][http]") {
    FrontOptions options;
    options.write_stall = Millis(60);
    Streams streams;
    Served served([&](Request&) { return streams.start(); }, options);
    Raw raw(served, 4096);
    raw.send(get("/"));
    const std::shared_ptr<Stream> stream = streams.next();
    while (stream->pending() <= Stream::kHighWater && stream->send(std::string(100'000, 'x'))) {
    }
    CHECK(eventually([&] { return stream->closed(); }));
    CHECK(eventually([&] { return served.front->connections() == 0; }));
}

TEST_CASE("a producer that never holds back cannot fill the memory", "[unit][http]") {
    FrontOptions options;
    options.stream_buffer = 1U << 20U;
    Streams streams;
    Served served([&](Request&) { return streams.start(); }, options);
    Raw raw(served, 4096);
    raw.send(get("/"));
    const std::shared_ptr<Stream> stream = streams.next();
    int sent = 0;
    while (stream->send(std::string(100'000, 'x')) && sent < 10'000) ++sent;
    CHECK(sent < 10'000);
    CHECK(stream->closed());
    CHECK(eventually([&] { return served.front->connections() == 0; }));
}

TEST_CASE("the queued bytes of all streams of a tenant have a bound", "[unit][http]") {
    Streams streams;
    FrontOptions options;
    options.unread_bytes_of_tenant = 20U << 20U;
    options.stream_buffer = 32U << 20U;
    Served served(
        [&](Request& request) {
            request.actsFor(request.path(), "", {});
            return streams.start();
        },
        options);
    std::vector<std::unique_ptr<Raw>> clients;
    const auto started = [&](const std::string& tenant) {
        clients.push_back(std::make_unique<Raw>(served, 4096));
        clients.back()->send(get(tenant));
        return streams.next();
    };
    const std::string much(16U << 20U, 'x');  // more than the buffers of sockets hold
    const std::shared_ptr<Stream> first = started("/a");
    CHECK(first->send(much));
    const std::shared_ptr<Stream> second = started("/a");
    CHECK_FALSE(second->send(much));
    CHECK(second->closed());
    CHECK(started("/b")->send(much));
    CHECK(started("/a")->send("little"));
    first->finish();
    clients.front()->until("0\r\n\r\n");  // has been read, and so no longer counts
    CHECK(eventually([&] { return started("/a")->send(much); }));
}

TEST_CASE("streams beyond the cap are refused, HEAD opens none", "[unit][http]") {
    FrontOptions options;
    options.streams = 1;
    Streams streams;
    Served served([&](Request&) { return streams.start(); }, options);
    Raw head(served);
    head.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(head.answer(true).status == 200);
    Raw one(served);
    one.send(get("/"));
    const std::shared_ptr<Stream> stream = streams.next();
    const Answer refused = Raw(served).ask(get("/"));
    CHECK(refused.status == 503);
    CHECK(refused.has("Retry-After: "));
    stream->finish();
    CHECK(eventually([&] { return served.front->streams() == 0; }));
    Raw again(served);
    again.send(get("/"));
    streams.next()->finish();
    CHECK(again.until("0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("an HTTP/1.0 client gets the stream as it is", "[unit][http]") {
    Streams streams;
    Served served([&](Request&) { return streams.start(); });
    Raw raw(served);
    raw.send("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    const std::shared_ptr<Stream> stream = streams.next();
    stream->send("plain");
    stream->finish();
    CHECK(raw.rest().ends_with("\r\n\r\nplain"));
}

TEST_CASE("stop lets streams send a last event and ends them", "[unit][http]") {
    Streams streams;
    std::stop_token token;
    Served served([&](Request& request) {
        token = request.stopToken();
        return streams.start();
    });
    Raw polite(served);
    polite.send(get("/"));
    const std::shared_ptr<Stream> one = streams.next();
    Raw mute(served);
    mute.send(get("/"));
    const std::shared_ptr<Stream> two = streams.next();
    {
        const std::stop_callback goodbye(token, [&] {
            one->send("bye");
            one->finish();
        });
        served.front->stop();
    }
    CHECK(polite.rest().ends_with("3\r\nbye\r\n0\r\n\r\n"));
    CHECK(mute.rest().ends_with("0\r\n\r\n"));
    CHECK(one->closed());
    CHECK(!two->send("after"));
}

TEST_CASE("streams and waits do not use up the connections of an address", "[unit][http]") {
    FrontOptions options;
    options.connections_per_address = 4;
    Streams streams;
    Served served(
        [&](Request& request) { return request.path() == "/s" ? streams.start() : text("now"); },
        options);
    std::vector<std::unique_ptr<Raw>> open;
    std::vector<std::shared_ptr<Stream>> held;
    for (int i = 0; i < 12; ++i) {
        open.push_back(std::make_unique<Raw>(served));
        open.back()->send(get("/s"));
        CHECK(open.back()->until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
        held.push_back(streams.next());
    }
    CHECK(served.front->streams() == 12);
    CHECK(Raw(served).ask(get("/")).status == 200);
    // A connection counts again after its stream has ended.
    for (const auto& stream : held) stream->finish();
    CHECK(eventually([&] { return served.front->connections() <= 5; }));
    CHECK(Raw(served).ask(get("/")).status == 200);
}

TEST_CASE("a news stream ends for a newer one of the same token", "[unit][http]") {
    FrontOptions options;
    options.news_of_token = 2;
    Streams streams;
    Served served(
        [&](Request& request) {
            request.actsFor("t", request.path(), {});
            Response response = streams.start();
            response.news = true;
            return response;
        },
        options);
    Raw first(served);
    Raw second(served);
    Raw other(served);
    first.send(get("/one"));
    const std::shared_ptr<Stream> one = streams.next();
    second.send(get("/one"));
    const std::shared_ptr<Stream> two = streams.next();
    other.send(get("/other"));
    const std::shared_ptr<Stream> others = streams.next();
    Raw third(served);
    third.send(get("/one"));
    const std::shared_ptr<Stream> three = streams.next();
    CHECK(first.until("0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    CHECK(eventually([&] { return one->closed(); }));
    CHECK(served.front->streams() == 3);
    CHECK_FALSE(two->closed());
    CHECK_FALSE(others->closed());
    CHECK(three->send("news"));
    // The end was a clean one, so the connection goes on.
    first.send(get("/one"));
    const std::shared_ptr<Stream> again = streams.next();
    CHECK(second.until("0\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("the streamed answer of a call is never ended for a newer one", "[unit][http]") {
    FrontOptions options;
    options.news = options.news_of_tenant = options.news_of_token = 1;
    Streams streams;
    Served served(
        [&](Request& request) {
            request.actsFor("t", "token", {});
            Response response = streams.start();
            response.news = request.path() == "/news";
            return response;
        },
        options);
    Raw call(served);
    call.send(get("/call"));
    const std::shared_ptr<Stream> answer = streams.next();
    std::vector<std::unique_ptr<Raw>> open;
    std::vector<std::shared_ptr<Stream>> held;
    for (int i = 0; i < 5; ++i) {
        open.push_back(std::make_unique<Raw>(served));
        open.back()->send(get("/news"));
        held.push_back(streams.next());
    }
    CHECK(eventually([&] { return served.front->streams() == 2; }));
    CHECK_FALSE(answer->closed());
    CHECK(answer->send("still here"));
    answer->finish();
    CHECK(call.until("0\r\n\r\n").find("still here") != std::string::npos);
}
