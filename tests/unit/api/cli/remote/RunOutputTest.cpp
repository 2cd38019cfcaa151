#include <nlohmann/json.hpp>

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

TEST_CASE("a status that only a later server has is a failure, unless there is an exit code",
          "[unit][cli]") {
    CHECK(exitStatusOf({{"status", "melted"}}) == 1);
    CHECK(exitStatusOf({{"status", "melted"}, {"exitCode", 4}}) == 4);
    CHECK(exitStatusOf(Json::object()) == 1);
}
