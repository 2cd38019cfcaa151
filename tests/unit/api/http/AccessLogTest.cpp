#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "api/http/AccessLog.h"
#include "base/Json.h"

using namespace hearth;
using namespace hearth::api;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kTook{3};

Json lineOf(const AccessEntry& entry) {
    const std::string line = AccessLog::line(entry, fromUnixMillis(1'700'000'000'123), kTook);
    REQUIRE(std::count(line.begin(), line.end(), '\n') == 1);
    REQUIRE(line.back() == '\n');
    return parseJson(line);
}

struct Ground {
    Ground() = default;
    ~Ground() { fs::remove_all(folder); }
    Ground(const Ground&) = delete;
    Ground& operator=(const Ground&) = delete;

    static std::string made() {
        std::string pattern = (fs::temp_directory_path() / "hearth-access-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        return pattern;
    }

    fs::path folder = made();
    std::string file = (folder / "access.log").string();
    SystemClock clock;
    Fd quiet{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    metrics::Log log{quiet.get()};
    metrics::Metrics metrics;
};

}  // namespace

TEST_CASE("a request is one line of JSON", "[unit][http]") {
    AccessEntry entry;
    entry.method = "POST";
    entry.route = "/v1/workspaces";
    entry.path = "/v1/workspaces";
    entry.tenant = "red";
    entry.token = "tok_1";
    entry.client = "192.0.2.9";
    entry.request_id = "req_1";
    entry.user_agent = "curl/8";
    entry.status = 201;
    entry.bytes_in = 200;
    entry.bytes_out = 900;
    CHECK(AccessLog::line(entry, fromUnixMillis(1'700'000'000'123), kTook) ==
          R"({"time":"2023-11-14T22:13:20.123Z","method":"POST","route":"/v1/workspaces",)"
          R"("path":"/v1/workspaces","status":201,"errorCode":null,"bytesIn":200,"bytesOut":900,)"
          R"("durationMs":3.000,"whole":true,"tenant":"red","token":"tok_1",)"
          R"("client":"192.0.2.9","requestId":"req_1","traceId":null,"userAgent":"curl/8"})"
          "\n");
    const Json unknown = lineOf({});
    CHECK(unknown["status"].is_null());
    CHECK(unknown["method"].is_null());
    CHECK(unknown["bytesOut"] == 0);
}

TEST_CASE("a request can neither break a line of the log nor make it long", "[unit][http]") {
    AccessEntry entry;
    entry.method = std::string(8192, 'M');
    entry.path = "/" + std::string(8191, '"');
    entry.user_agent = "a\r\n{\"time\":\"forged\"}\x7f\x01\xff\xc3" + std::string(1000, 'x');
    entry.client = std::string("1\0002", 3);
    const std::string line = AccessLog::line(entry, fromUnixMillis(0), kTook);
    CHECK(line.size() < 8192);
    const Json told = lineOf(entry);
    CHECK(told["path"] == "/" + std::string(2047, '"'));
    CHECK(told["method"].get<std::string>().size() == 256);
    const std::string agent = told["userAgent"];
    CHECK(agent.starts_with("a\r\n{\"time\":\"forged\"}\x7f\x01\xEF\xBF\xBD"));
    CHECK(std::count(agent.begin(), agent.end(), 'x') == 256 - 24);
    // The cut falls inside a character.
    entry.user_agent = std::string(255, 'a') + "\xC3\xA9";
    CHECK(lineOf(entry)["userAgent"] == std::string(255, 'a') + "\xEF\xBF\xBD");
}

TEST_CASE("the access log may be read by its group, whatever the umask", "[unit][http]") {
    Ground ground;
    const mode_t before = ::umask(077);
    AccessLog access(ground.file, ground.clock, ground.log, ground.metrics);
    ::umask(before);
    for (int i = 0; i < 1'000; ++i) access.record({});
    REQUIRE(access.flush(std::chrono::seconds(30)));
    std::ifstream in(ground.file);
    CHECK(std::count(std::istreambuf_iterator<char>(in), {}, '\n') == 1'000);
    struct stat told {};
    REQUIRE(::stat(ground.file.c_str(), &told) == 0);
    CHECK((told.st_mode & 0777U) == 0640U);
    const AccessLog none("", ground.clock, ground.log, ground.metrics);
    CHECK_FALSE(none.enabled());
    CHECK_THROWS_WITH(AccessLog("/nowhere/a", ground.clock, ground.log, ground.metrics),
                      Catch::Contains("the access log /nowhere/a"));
}

TEST_CASE("a flush waits only for earlier lines while new lines arrive", "[unit][http]") {
    Ground ground;
    AccessLog access(ground.file, ground.clock, ground.log, ground.metrics);
    std::latch begun(1);
    std::jthread busy([&](const std::stop_token& stop) {
        access.record({});
        begun.count_down();
        while (!stop.stop_requested()) access.record({});
    });
    begun.wait();
    for (int i = 0; i < 20; ++i) {
        access.record({});
        REQUIRE(access.flush(std::chrono::seconds(10)));
    }
}

TEST_CASE("a failing disk loses only lines, and they are counted", "[unit][http]") {
    if (::access("/dev/full", W_OK) != 0) return;
    Ground ground;
    {
        AccessLog access("/dev/full", ground.clock, ground.log, ground.metrics);
        AccessEntry entry;
        entry.path = std::string(2048, 'p');
        for (int i = 0; i < 10'000; ++i) access.record(entry);
        CHECK_FALSE(access.flush(std::chrono::milliseconds(0)));
        CHECK(ground.metrics.render().find("hearth_log_lines_dropped_total 0\n") ==
              std::string::npos);
    }
}

TEST_CASE("a line cut by a full disk is ended and written again whole", "[unit][http]") {
    Ground ground;
    AccessLog access(ground.file, ground.clock, ground.log, ground.metrics);
    constexpr std::size_t kLines = 10;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1'000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    for (std::size_t i = 0; i < kLines; ++i) access.record({});
    const bool fit = access.flush(std::chrono::milliseconds(200));
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK_FALSE(fit);
    REQUIRE(access.flush(std::chrono::seconds(30)));
    std::size_t whole = 0;
    std::size_t torn = 0;
    std::ifstream in(ground.file);
    for (std::string line; std::getline(in, line);) ++(line.ends_with('}') ? whole : torn);
    CHECK(whole == kLines);
    CHECK(torn == 1);
}
