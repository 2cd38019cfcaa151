#include <catch2/catch.hpp>

#include "tests/support/Support.h"
#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;

namespace {

/// Checks that soon the run folder has nothing of execution e1. Interpreters that wait have
/// folders.
bool isRemoved(const AgentProcess& agent) {
    return hearth::test::eventually([&] {
        for (const auto& entry : std::filesystem::directory_iterator(agent.run())) {
            if (entry.path().filename().string().rfind("e1", 0) == 0) return false;
        }
        return true;
    });
}

/// Runs Python code in a new agent. Checks that soon after its end nothing is left in the run
/// folder.
void leavesNothing(const std::string& code) {
    Bound b;
    const Outcome o = b.client.ask({{"op", "exec"},
                                    {"id", "e1"},
                                    {"language", "python"},
                                    {"timeoutMs", 20'000},
                                    {"code", "import os\nos.chdir(os.path.dirname(__file__))\n" +
                                                 code + "\nprint('made')\n"}});
    INFO(o.err);
    CHECK(o.out == "made\n");
    CHECK(isRemoved(b.agent));
}

}  // namespace

TEST_CASE("hundreds of files beside a code go with its folder", "[unit][agent][program]") {
    leavesNothing("for i in range(300): open(f'file{i}', 'w').close()");
}

TEST_CASE("folders that nobody may write to or read go with a code's folder",
          "[unit][agent][program]") {
    leavesNothing(R"(
for mode in (0o555, 0o000):
    inner = f'{mode}/inner'
    os.makedirs(inner)
    for folder in (str(mode), inner):
        open(folder + '/file', 'w').close()
    os.chmod(inner, mode)
    os.chmod(str(mode), mode))");
}

TEST_CASE("deep folders go with a code's folder", "[unit][agent][program]") {
    leavesNothing("os.makedirs('a/b/c/d/e')\nopen('a/b/c/d/e/x', 'w').close()");
    leavesNothing(R"(
for i in range(2000):
    os.mkdir('d')
    os.chdir('d')
open('x', 'w').close())");
}

TEST_CASE("a link beside a code leads the removal nowhere", "[unit][agent][program]") {
    const hearth::test::TempDir elsewhere;
    std::filesystem::permissions(elsewhere.path(), std::filesystem::perms::all);
    std::ofstream(elsewhere.file("kept")) << "x";
    leavesNothing("for i in range(300): os.symlink('" + elsewhere.path() + "', f'link{i}')");
    CHECK(std::filesystem::exists(elsewhere.file("kept")));
}

TEST_CASE("an execution may have the name of a folder that is still removed",
          "[unit][agent][program]") {
    Bound b;
    Json run = {{"op", "exec"}, {"id", "e1"}, {"language", "shell"}};
    run["code"] = "cd ${0%/*}; i=0; while [ $i -lt 600 ]; do : > f$i; i=$((i + 1)); done; echo 1";
    CHECK(b.client.ask(run).out == "1\n");
    CHECK(b.client.ask({{"op", "forget"}, {"id", "e1"}}).ok);
    run["code"] = "sleep 0.2; cat $0";
    CHECK(b.client.ask(run).out == run["code"].get<std::string>());
    CHECK(isRemoved(b.agent));
}
