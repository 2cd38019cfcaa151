#include <fcntl.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/Fd.h"
#include "base/Json.h"
#include "metrics/Log.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::metrics;
using namespace hearth::test;

namespace {

struct Paper {
    TempDir dir;
    Fd fd{::open(dir.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    Log log{fd.get()};

    std::vector<std::string> lines() const {
        std::istringstream in(readText(dir.file("log")));
        std::vector<std::string> out;
        for (std::string line; std::getline(in, line);) out.push_back(line);
        return out;
    }
    /// Returns the lines without their times.
    std::vector<std::string> told() const {
        std::vector<std::string> out;
        for (const std::string& line : lines()) out.push_back(line.substr(line.find(' ') + 1));
        return out;
    }
};

}  // namespace

TEST_CASE("an event is one line of time, level, name and fields, each with its key",
          "[unit][metrics]") {
    Paper paper;
    paper.log.info("pool.ready", {{"pool", "p"}, {"count", 3}, {"seconds", 0.00125}});
    paper.log.debug("not.shown");
    REQUIRE(paper.lines().size() == 1);
    const std::string line = paper.lines().front();
    CHECK(line.substr(27) == " level=info event=pool.ready pool=p count=3 seconds=0.00125");
    CHECK(line.starts_with("ts=20"));
    CHECK(line[13] == 'T');
    CHECK(line[26] == 'Z');
}

TEST_CASE("as JSON a line is one object, whose numbers are numbers", "[unit][metrics]") {
    const Paper paper;
    Log log(paper.fd.get(), LogLevel::Debug, LogFormat::Json);
    log.debug("claim.refused", {{"why", "no \"room\"\n"}, {"waiting", 3}, {"seconds", 1.5}});
    log.info("odd", {{"raw", "\xff\x7f"}, {"seconds", std::nan("")}});
    REQUIRE(paper.lines().size() == 2);
    const Json first = parseJson(paper.lines()[0]);
    CHECK(first.at("ts").get<std::string>().size() == 24);
    CHECK(first.at("level") == "debug");
    CHECK(first.at("event") == "claim.refused");
    CHECK(first.at("why") == "no \"room\"\n");
    CHECK(first.at("waiting") == 3);
    CHECK(first.at("seconds") == 1.5);
    const Json second = parseJson(paper.lines()[1]);
    CHECK(second.at("raw") == "\xef\xbf\xbd\x7f");
    CHECK(second.at("seconds") == "nan");
}

TEST_CASE("an audit line is written whatever the log's level", "[unit][metrics]") {
    Paper paper;
    for (const LogLevel least : {LogLevel::Debug, LogLevel::Error}) {
        Log log{paper.fd.get(), least};
        log.info("not.shown.always");
        log.audit("egress.request", {{"decision", "allowed"}});
    }
    REQUIRE(paper.told().size() == 3);
    CHECK(paper.told()[1] == "level=audit event=egress.request decision=allowed");
    CHECK(paper.told()[2] == "level=audit event=egress.request decision=allowed");
}

TEST_CASE("no value can forge a line or a field", "[unit][metrics]") {
    Paper paper;
    paper.log.warn("e", {{"a", "x\nts=2026-01-01T00:00:00.000Z level=error event=forged"}});
    paper.log.warn("e", {{"a", "x b=1"}});
    paper.log.warn("e", {{"a", "say \"hi\" \\"}});
    paper.log.warn("e", {{"a", std::string("\r\t\x1b[31m\x7f\0", 9)}});
    paper.log.warn("e", {{"a", ""}});
    paper.log.warn("e", {{"a", "\u009b31m\u200b\U000E0041größer\xc2"}});
    const auto told = paper.told();
    REQUIRE(told.size() == 6);
    CHECK(told[5] == "level=warn event=e a=\"\\u009b31m\\u200b\\udb40\\udc41größer\ufffd\"");
    CHECK(told[0] ==
          "level=warn event=e a=\"x\\nts=2026-01-01T00:00:00.000Z level=error event=forged\"");
    CHECK(told[1] == "level=warn event=e a=\"x b=1\"");
    CHECK(told[2] == "level=warn event=e a=\"say \\\"hi\\\" \\\\\"");
    CHECK(told[3] == "level=warn event=e a=\"\\r\\t\\u001b[31m\\u007f\\u0000\"");
    CHECK(told[4] == "level=warn event=e a=\"\"");
}
