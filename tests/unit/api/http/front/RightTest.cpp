#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>

#include "base/Error.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
using namespace hearth::http;

namespace {

/// A front whose streams and waits depend on rights that the test ends. The path selects the
/// answer: "/news", "/call" (a stream that is not news) or "/wait".
class Rights {
public:
    Rights() : served_([this](Request& request) { return answer(request); }) {}

    Served& served() { return served_; }
    std::shared_ptr<Stream> next() {
        std::shared_ptr<Stream> found;
        const bool came = eventually([&] {
            const std::lock_guard lock(mutex_);
            found = std::exchange(stream_, nullptr);
            return found != nullptr;
        });
        if (!came) throw std::runtime_error("no stream was started");
        return found;
    }
    /// Sets when the right of later requests expires.
    void expiresIn(Millis time) { expires_ = served_.clock.wall() + time; }
    void withdraw() { withdrawal_.request_stop(); }
    /// Gives later requests another token.
    void changeToken() { withdrawal_ = std::stop_source(); }
    int waiting() const { return waiting_; }
    int resumed() const { return resumed_; }

private:
    Response answer(Request& request) {
        request.actsFor("t", "token", {withdrawal_.get_token(), expires_});
        if (request.path() == "/wait") return wait();
        Response response = text("");
        response.news = request.path() == "/news";
        response.body = StreamStarter([this](std::shared_ptr<Stream> stream) {
            const std::lock_guard lock(mutex_);
            stream_ = std::move(stream);
        });
        return response;
    }
    Response wait() {
        Suspension suspension;
        suspension.subscribe = [this](const std::function<void()>&) {
            ++waiting_;
            return std::shared_ptr<void>(nullptr, [this](void*) { --waiting_; });
        };
        suspension.ready = [] { return false; };
        suspension.resume = [this] {
            ++resumed_;
            return text("resumed");
        };
        Response response;
        response.body = std::move(suspension);
        return response;
    }

    std::mutex mutex_;
    std::shared_ptr<Stream> stream_;  // guarded by mutex_
    std::stop_source withdrawal_;
    std::optional<WallTime> expires_;
    std::atomic<int> waiting_{0};
    std::atomic<int> resumed_{0};
    Served served_;
};

}  // namespace

TEST_CASE("streams end when their right is withdrawn, and streams of other rights go on",
          "[unit][http]") {
    Rights rights;
    Raw news(rights.served());
    news.send(get("/news"));
    const std::shared_ptr<Stream> heard = rights.next();
    Raw call(rights.served());
    call.send(get("/call"));
    const std::shared_ptr<Stream> cut = rights.next();
    rights.withdraw();
    // A stream of news ends cleanly. A cut answer does not look like a complete one.
    CHECK(news.until("0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    CHECK(call.rest().find("0\r\n\r\n") == std::string::npos);
    CHECK(eventually([&] { return heard->closed() && cut->closed(); }));
    CHECK(heard->lapsed());
    CHECK(cut->lapsed());
    CHECK_FALSE(heard->send("late"));
    rights.changeToken();
    news.send(get("/news"));  // the connection is still open
    const std::shared_ptr<Stream> other = rights.next();
    CHECK(other->send("news"));
    CHECK(news.until("news\r\n").starts_with("HTTP/1.1 200 "));
    CHECK_FALSE(other->lapsed());
    CHECK(rights.served().front->streams() == 1);
}

TEST_CASE("a stream whose client reads nothing ends with its right, too", "[unit][http]") {
    Rights rights;
    Raw client(rights.served(), 4096);
    client.send(get("/news"));
    const std::shared_ptr<Stream> stream = rights.next();
    while (stream->pending() == 0) REQUIRE(stream->send(std::string(64U << 10U, 'x')));
    rights.withdraw();
    CHECK(eventually([&] { return stream->closed(); }));
    CHECK(eventually([&] { return rights.served().front->connections() == 0; }));
}

TEST_CASE("a stream ends at once if its right was withdrawn before", "[unit][http]") {
    Rights rights;
    rights.withdraw();
    Raw client(rights.served());
    client.send(get("/news"));
    CHECK(client.until("0\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a stream ends at the time of its right", "[unit][http]") {
    Rights rights;
    rights.expiresIn(Millis(300));
    const TimePoint begun = rights.served().clock.now();
    Raw client(rights.served());
    client.send(get("/news"));
    const std::shared_ptr<Stream> stream = rights.next();
    CHECK(client.until("0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    const auto lasted = rights.served().clock.now() - begun;
    CHECK(lasted > Millis(290));
    CHECK(lasted < Millis(10'000));
    CHECK(stream->lapsed());
}

TEST_CASE("a request that waits is refused when its right ends, and not resumed", "[unit][http]") {
    Rights rights;
    Raw revoked(rights.served());
    revoked.send(get("/wait"));
    CHECK(eventually([&] { return rights.waiting() == 1; }));
    rights.withdraw();
    CHECK(revoked.answer().status == 401);
    CHECK(eventually([&] { return rights.waiting() == 0; }));
    rights.changeToken();
    rights.expiresIn(Millis(200));
    revoked.send(get("/wait"));
    CHECK(revoked.answer().status == 401);
    CHECK(rights.resumed() == 0);
}

TEST_CASE("a transfer in pieces ends with its right", "[unit][http]") {
    std::stop_source of_up;
    std::stop_source of_down;
    Served served([&](Request& request) {
        const bool up = request.path() == "/up";
        request.actsFor("t", "token", {(up ? of_up : of_down).get_token()});
        if (up) {
            char byte = 0;
            request.readSome(&byte, 1);
            of_up.request_stop();
            request.readSome(&byte, 1);
            return text("taken");
        }
        Response response = text("");
        response.body = BodyWriter([&](const std::function<void(std::string_view)>& write) {
            write("first");
            of_down.request_stop();
            write("second");
        });
        return response;
    });
    Raw down(served);
    down.send(get("/down"));
    const std::string got = down.rest();
    CHECK(got.find("first") != std::string::npos);
    CHECK(got.find("second") == std::string::npos);
    CHECK(got.find("0\r\n\r\n") == std::string::npos);
    Raw up(served);
    CHECK(up.ask("POST /up HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab").status ==
          401);
}
