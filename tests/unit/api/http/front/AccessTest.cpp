#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Json.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::api;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kPatience{30};

/// A front with an access log.
struct Logged {
    explicit Logged(std::function<Response(Request&)> function)
        : access((folder / "access.log").string(), clock, log, metrics),
          served(std::move(function), options(access)) {}
    ~Logged() { fs::remove_all(folder); }
    Logged(const Logged&) = delete;
    Logged& operator=(const Logged&) = delete;

    static fs::path made() {
        std::string pattern = (fs::temp_directory_path() / "hearth-access-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        return pattern;
    }
    static FrontOptions options(AccessLog& access) {
        FrontOptions options;
        options.workers = 2;
        options.access = &access;
        return options;
    }
    /// Returns the lines, after at least `count` have arrived.
    std::vector<Json> lines(std::size_t count) {
        std::vector<Json> found;
        eventually([&] {
            REQUIRE(access.flush(kPatience));
            found.clear();
            std::ifstream in(folder / "access.log");
            for (std::string line; std::getline(in, line);) found.push_back(parseJson(line));
            return found.size() >= count;
        });
        REQUIRE(found.size() == count);
        return found;
    }

    fs::path folder = made();
    SystemClock clock;
    Fd quiet{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    metrics::Log log{quiet.get()};
    metrics::Metrics metrics;
    AccessLog access;
    Served served;
};

}  // namespace

TEST_CASE("each request is a line, without its query and without the path of a signed link",
          "[unit][http]") {
    Logged logged([](Request& request) {
        request.actsFor("red", "tok_1", {});
        request.tookRoute("/here");
        if (request.path() == "/none") throw Error(ErrorCode::NotFound, "nothing is here");
        request.readBody(100);
        return text("hello");
    });
    Raw client(logged.served);
    const std::string asked =
        "POST /a%20b?secret=hush HTTP/1.1\r\nHost: localhost\r\nUser-Agent: me\r\n"
        "Content-Length: 3\r\n\r\nabc";
    const Answer answer = client.ask(asked);
    CHECK(client.ask("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404);
    client.ask("GET /v1/links/hush HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::vector<Json> told = logged.lines(3);
    CHECK(told[0]["method"] == "POST");
    CHECK(told[0]["route"] == "/test");
    CHECK(told[0]["path"] == "/a%20b");
    CHECK(told[0]["status"] == 200);
    CHECK(told[0]["bytesIn"] == asked.size());
    CHECK(told[0]["bytesOut"] == answer.head.size() + answer.body.size());
    CHECK(told[0]["whole"] == true);
    CHECK(told[0]["tenant"] == "red");
    CHECK(told[0]["token"] == "tok_1");
    CHECK(told[0]["client"] == "127.0.0.1");
    CHECK(told[0]["userAgent"] == "me");
    CHECK(told[0]["traceId"].is_null());
    CHECK(answer.has("X-Request-Id: " + told[0]["requestId"].get<std::string>()));
    CHECK(told[1]["route"] == "/here");
    CHECK(told[1]["status"] == 404);
    CHECK(told[1]["errorCode"] == "NOT_FOUND");
    CHECK(told[2]["path"].is_null());
    for (const Json& line : told) CHECK(line.dump().find("hush") == std::string::npos);
}

TEST_CASE("a request that reaches no handler is logged with its known fields", "[unit][http]") {
    Logged logged([](Request&) { return text(""); });
    const Answer bad = Raw(logged.served).ask("GET / HTTP/1.1\nHost: x\n\n");
    CHECK(bad.status == 400);
    const Json told = logged.lines(1)[0];
    CHECK(told["status"] == 400);
    CHECK(told["errorCode"] == "INVALID_ARGUMENT");
    CHECK(told["method"].is_null());
    CHECK(told["path"].is_null());
    CHECK(told["client"] == "127.0.0.1");
    CHECK(bad.has(told["requestId"].get<std::string>()));
    CHECK(told["bytesOut"] == bad.head.size() + bad.body.size());
    CHECK(Raw(logged.served).ask("GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n").status == 403);
    CHECK(logged.lines(2)[1]["path"] == "/");
}

TEST_CASE("a stream is a line at its end, which says whether the client got all of it",
          "[unit][http]") {
    std::atomic<int> answers{0};
    std::vector<std::shared_ptr<Stream>> streams(2);
    std::atomic<int> started{0};
    Logged logged([&](Request&) {
        Response response = text("");
        const auto which = static_cast<std::size_t>(answers++);
        response.body = StreamStarter([&, which](std::shared_ptr<Stream> stream) {
            stream->send("hello");
            streams[which] = std::move(stream);
            ++started;
        });
        return response;
    });
    constexpr const char* kAsk = "GET /s HTTP/1.1\r\nHost: localhost\r\n\r\n";
    Raw whole(logged.served);
    whole.send(kAsk);
    std::string got = whole.until("hello");
    REQUIRE(eventually([&] { return started == 1; }));
    logged.lines(0);
    streams[0]->finish();
    got += whole.until("0\r\n\r\n");
    const Json told = logged.lines(1)[0];
    CHECK(told["status"] == 200);
    CHECK(told["whole"] == true);
    CHECK(told["bytesOut"] == got.size());
    {
        Raw gone(logged.served);
        gone.send(kAsk);
        gone.until("hello");
    }
    CHECK(logged.lines(2)[1]["whole"] == false);
}

TEST_CASE("a client that leaves while it waits is a line without a status", "[unit][http]") {
    Logged logged([](Request& request) {
        request.tookRoute("/wait");
        Suspension suspension;
        suspension.subscribe = [](const std::function<void()>&) { return std::shared_ptr<void>(); };
        suspension.ready = [] { return false; };
        suspension.resume = [] { return text("late"); };
        Response response;
        response.body = std::move(suspension);
        return response;
    });
    { Raw(logged.served).send("GET /w HTTP/1.1\r\nHost: localhost\r\n\r\n"); }
    const Json told = logged.lines(1)[0];
    CHECK(told["route"] == "/wait");
    CHECK(told["status"].is_null());
    CHECK(told["whole"] == false);
}
