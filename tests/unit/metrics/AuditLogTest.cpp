#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/Json.h"
#include "metrics/AuditLog.h"

using namespace hearth;
using namespace hearth::metrics;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kPatience{30};

struct Ground {
    Ground() = default;
    ~Ground() { fs::remove_all(folder); }
    Ground(const Ground&) = delete;
    Ground& operator=(const Ground&) = delete;

    static std::string made() {
        std::string pattern = (fs::temp_directory_path() / "hearth-audit-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        return pattern;
    }

    fs::path folder = made();
    fs::path file = folder / "audit.log";
    SystemClock clock;
    Fd quiet{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
    Log log{quiet.get()};
    Metrics metrics;
};

std::vector<Json> entriesIn(const fs::path& file) {
    std::vector<Json> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(parseJson(line));
    return lines;
}

AuditEntry entry(const std::string& resource, int status = 200) {
    AuditEntry one;
    one.surface = "rest";
    one.operation = "createWorkspace";
    one.resource = resource;
    one.tenant = "red";
    one.status = status;
    return one;
}

}  // namespace

TEST_CASE("each entry is one line of JSON with caller, action and outcome", "[unit][audit]") {
    Ground ground;
    AuditLog audit(ground.file.string(), ground.clock, ground.log, ground.metrics);
    audit.record(entry("ws_1", 201));
    audit.record(entry("line\nbreak \"quoted\" \xff", 403));
    audit.record(entry("", 409));
    REQUIRE(audit.flush(kPatience));
    const auto lines = entriesIn(ground.file);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0]["decision"] == "allowed");
    CHECK(lines[0]["resource"] == "ws_1");
    CHECK(lines[0]["tenant"] == "red");
    CHECK(lines[0]["token"].is_null());
    CHECK(lines[1]["decision"] == "denied");
    CHECK(lines[1]["resource"] == "line\nbreak \"quoted\" \xEF\xBF\xBD");
    CHECK(lines[2]["decision"] == "failed");
    struct stat told {};
    REQUIRE(::stat(ground.file.c_str(), &told) == 0);
    CHECK((told.st_mode & 0777U) == 0600U);
    CHECK(ground.metrics.render().find("hearth_audit_entries_total{result=\"written\"} 3") !=
          std::string::npos);
}

TEST_CASE("an audit log that was renamed goes on in a new file, and the old one is not cut",
          "[unit][audit]") {
    Ground ground;
    {
        AuditLog audit(ground.file.string(), ground.clock, ground.log, ground.metrics);
        audit.record(entry("ws_1"));
        REQUIRE(audit.flush(kPatience));
        fs::rename(ground.file, ground.folder / "audit.log.1");
        audit.reopen();
        audit.record(entry("ws_2"));
        audit.record(entry("ws_3"));
    }  // the destructor writes the queued entries
    CHECK(entriesIn(ground.folder / "audit.log.1").size() == 1);
    CHECK(entriesIn(ground.file).size() == 2);
    AuditLog again(ground.file.string(), ground.clock, ground.log, ground.metrics);
    again.record(entry("ws_4"));
    REQUIRE(again.flush(kPatience));
    CHECK(entriesIn(ground.file).size() == 3);
}

TEST_CASE("a full disk is noticed, and the entry is written when there is room again",
          "[unit][audit]") {
    if (::access("/dev/full", W_OK) != 0) return;
    Ground ground;
    fs::create_symlink("/dev/full", ground.folder / "link");
    CHECK_THROWS_AS(
        AuditLog((ground.folder / "link").string(), ground.clock, ground.log, ground.metrics),
        std::system_error);  // no link is followed
    AuditLog audit("/dev/full", ground.clock, ground.log, ground.metrics);
    audit.record(entry("ws_1"));
    CHECK_FALSE(audit.flush(std::chrono::milliseconds(200)));
    CHECK(ground.metrics.render().find("hearth_audit_entries_total{result=\"failed\"} 0") ==
          std::string::npos);
}

TEST_CASE("without a file nothing is recorded", "[unit][audit]") {
    Ground ground;
    AuditLog audit("", ground.clock, ground.log, ground.metrics);
    CHECK_FALSE(audit.enabled());
    audit.record(entry("ws_1"));
    CHECK(audit.flush(std::chrono::milliseconds(0)));
}

TEST_CASE("the same denial over and over is one line a second, which counts the others",
          "[unit][audit]") {
    Ground ground;
    ManualClock clock;
    AuditLog audit(ground.file.string(), clock, ground.log, ground.metrics);
    for (int i = 0; i < 1'000; ++i) audit.record(entry("", 401));
    AuditEntry other = entry("", 401);
    other.peer = "192.0.2.9";
    audit.record(other);
    for (int i = 0; i < 3; ++i) audit.record(entry("ws_" + std::to_string(i), 403));
    clock.advance(std::chrono::seconds(1));
    audit.record(entry("", 401));
    audit.record(entry("ws_9", 403));
    REQUIRE(audit.flush(kPatience));
    const auto lines = entriesIn(ground.file);
    REQUIRE(lines.size() == 5);
    CHECK_FALSE(lines[0].contains("more"));
    CHECK(lines[1]["peer"] == "192.0.2.9");
    CHECK(lines[2]["status"] == 403);
    CHECK(lines[3]["more"] == 999);
    CHECK(lines[4]["resource"] == "ws_9");
    CHECK(lines[4]["more"] == 2);
}

TEST_CASE("denials that were only counted are written at the log's end", "[unit][audit]") {
    Ground ground;
    ManualClock clock;
    {
        AuditLog audit(ground.file.string(), clock, ground.log, ground.metrics);
        for (int i = 0; i < 5; ++i) audit.record(entry("ws_" + std::to_string(i), 401));
        audit.record(entry("", 403));  // has its line
    }
    const auto lines = entriesIn(ground.file);
    REQUIRE(lines.size() == 3);
    CHECK(lines[2]["status"] == 401);
    CHECK(lines[2]["resource"] == "ws_4");
    CHECK(lines[2]["more"] == 3);
}

TEST_CASE("denials on other routes and of other callers are lines of their own", "[unit][audit]") {
    Ground ground;
    ManualClock clock;
    AuditLog audit(ground.file.string(), clock, ground.log, ground.metrics);
    AuditEntry one = entry("", 403);
    one.token = "tok_a";
    for (int i = 0; i < 2; ++i) audit.record(one);
    one.route = "/mcp";
    // The operation may be a name out of the request: it makes no other line.
    for (int i = 0; i < 2; ++i) {
        one.operation = "tools/call " + std::to_string(i);
        audit.record(one);
    }
    one.token = "tok_b";
    for (int i = 0; i < 2; ++i) audit.record(one);
    one.tenant = "blue";
    for (int i = 0; i < 2; ++i) audit.record(one);
    REQUIRE(audit.flush(kPatience));
    CHECK(entriesIn(ground.file).size() == 4);
}

TEST_CASE("all addresses of one IPv6 network of 64 bits count as one caller", "[unit][audit]") {
    Ground ground;
    ManualClock clock;
    AuditLog audit(ground.file.string(), clock, ground.log, ground.metrics);
    AuditEntry one = entry("", 401);
    for (const char* peer : {"2001:db8:0:1::1", "2001:db8:0:1::2",
                             "2001:db8:0:1:ffff::", "2001:db8:0:2::1", "192.0.2.1", "192.0.2.2"}) {
        one.peer = peer;
        audit.record(one);
    }
    REQUIRE(audit.flush(kPatience));
    const auto lines = entriesIn(ground.file);
    REQUIRE(lines.size() == 4);
    CHECK(lines[0]["peer"] == "2001:db8:0:1::1");
    CHECK(lines[1]["peer"] == "2001:db8:0:2::1");
}

TEST_CASE("a new kind of denials beyond the limit evicts the oldest one, which loses no count",
          "[unit][audit]") {
    Ground ground;
    ManualClock clock;
    AuditLog audit(ground.file.string(), clock, ground.log, ground.metrics);
    const auto denied = [&](std::size_t kind, const std::string& resource) {
        AuditEntry one = entry(resource, 401);
        one.reason = "kind " + std::to_string(kind);
        audit.record(one);
    };
    for (const char* resource : {"first", "second", "third"}) denied(0, resource);
    for (std::size_t kind = 1; kind < AuditLog::kMostKinds; ++kind) denied(kind, "");
    REQUIRE(audit.flush(kPatience));
    REQUIRE(entriesIn(ground.file).size() == AuditLog::kMostKinds);
    denied(AuditLog::kMostKinds, "");
    denied(AuditLog::kMostKinds - 1, "");  // still known: no line
    REQUIRE(audit.flush(kPatience));
    const auto lines = entriesIn(ground.file);
    REQUIRE(lines.size() == AuditLog::kMostKinds + 2);
    const Json& evicted = lines[AuditLog::kMostKinds];
    CHECK(evicted["reason"] == "kind 0");
    CHECK(evicted["resource"] == "third");
    CHECK(evicted["more"] == 1);
    CHECK_FALSE(lines.back().contains("more"));
}
