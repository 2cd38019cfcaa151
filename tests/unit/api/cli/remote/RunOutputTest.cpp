#include <nlohmann/json.hpp>
#include <sstream>

#include "api/cli/remote/RunOutput.h"
#include "api/command/ExitStatus.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::cli;

TEST_CASE("an execution's end becomes the exit status that a shell would give", "[unit][cli]") {
    CHECK(exitStatusOf({{"status", "ok"}, {"exitCode", 0}}) == 0);
    CHECK(exitStatusOf({{"status", "ok"}}) == 0);  // code in a context has no exit code
    CHECK(exitStatusOf({{"status", "failed"}, {"exitCode", 3}}) == 3);
    CHECK(exitStatusOf({{"status", "failed"}}) == 1);
    CHECK(exitStatusOf({{"status", "timeout"}, {"signal", "KILL"}}) == kTimedOut);
    CHECK(exitStatusOf({{"status", "oom"}, {"exitCode", 1}}) == 137);
    CHECK(exitStatusOf({{"status", "killed"}, {"signal", "SIGTERM"}}) == 143);
    CHECK(exitStatusOf({{"status", "killed"}}) == 137);
    CHECK(exitStatusOf({{"status", "lost"}}) == 1);
}

TEST_CASE("an unknown status is a failure, unless there is an exit code", "[unit][cli]") {
    CHECK(exitStatusOf({{"status", "melted"}}) == 1);
    CHECK(exitStatusOf({{"status", "melted"}, {"exitCode", 4}}) == 4);
    CHECK(exitStatusOf(Json::object()) == 1);
}

TEST_CASE("dropped output leaves a mark at its place", "[unit][cli]") {
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err};
    RunOutput output(console, false);
    output.take({.id = "", .type = "stdout", .data = R"({"text":"one"})"});
    output.take({.id = "", .type = "stdout", .data = R"({"text":"two\n","droppedBytes":9})"});
    output.take({.id = "", .type = "stdout", .data = R"({"base64":"/wo=","droppedBytes":3})"});
    CHECK(out.str() ==
          "one\n[… 9 bytes were not kept …]\ntwo\n[… 3 bytes were not kept …]\n\xFF\n");
    CHECK(err.str().empty());
    CHECK(output.lostBytes() == 12);
}
