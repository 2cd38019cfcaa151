#include <fcntl.h>

#include <sstream>

#include "base/Fd.h"
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
};

}  // namespace

TEST_CASE("an event is one line of time, level, name and fields", "[unit][metrics]") {
    Paper paper;
    paper.log.info("pool.ready", {{"pool", "p"}, {"count", 3}});
    paper.log.debug("not.shown");
    REQUIRE(paper.lines().size() == 1);
    const std::string line = paper.lines().front();
    CHECK(line.substr(24) == " info pool.ready pool=p count=3");
    CHECK(line[10] == 'T');
    CHECK(line[23] == 'Z');
}

TEST_CASE("an audit line is written whatever the log's level", "[unit][metrics]") {
    Paper paper;
    for (const LogLevel least : {LogLevel::Debug, LogLevel::Error}) {
        Log log{paper.fd.get(), least};
        log.info("not.shown.always");
        log.audit("egress.request", {{"decision", "allowed"}});
    }
    REQUIRE(paper.lines().size() == 3);
    CHECK(paper.lines()[1].substr(24) == " audit egress.request decision=allowed");
    CHECK(paper.lines()[2].substr(24) == " audit egress.request decision=allowed");
}

TEST_CASE("no value can forge a line or a field", "[unit][metrics]") {
    Paper paper;
    paper.log.warn("e", {{"a", "x\n2026-01-01T00:00:00.000Z error forged"}});
    paper.log.warn("e", {{"a", "x b=1"}});
    paper.log.warn("e", {{"a", "say \"hi\" \\"}});
    paper.log.warn("e", {{"a", std::string("\r\t\x1b[31m\x7f\0", 9)}});
    paper.log.warn("e", {{"a", ""}});
    const auto lines = paper.lines();
    REQUIRE(lines.size() == 5);
    CHECK(lines[0].substr(24) == " warn e a=\"x\\n2026-01-01T00:00:00.000Z error forged\"");
    CHECK(lines[1].substr(24) == " warn e a=\"x b=1\"");
    CHECK(lines[2].substr(24) == " warn e a=\"say \\\"hi\\\" \\\\\"");
    CHECK(lines[3].substr(24) == " warn e a=\"\\x0d\\x09\\x1b[31m\\x7f\\x00\"");
    CHECK(lines[4].substr(24) == " warn e a=\"\"");
}
