#include <catch2/catch.hpp>
#include <fstream>

#include "pool/agent/secure/Keys.h"
#include "pool/spec/FileLimits.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

/// Folders as those of a Pod: of the agent's image, its volumes, and its termination message.
struct PodFolders {
    PodFolders() {
        for (const char* folder : {"/image/python", "/inside", "/key"}) {
            fs::create_directories(dir.path() + folder);
        }
        fs::copy_file(HEARTH_AGENT_PATH, dir.path() + "/image/agent");
        std::ofstream(dir.path() + "/image/python/run.py") << "print(1)\n";
        fs::create_symlink("/etc/passwd", dir.path() + "/image/link");
    }

    int begin() const {
        const std::string agent = dir.path() + "/image/agent";
        const pid_t child = fork();
        if (child == 0) {
            execl(agent.c_str(), "hearth-agent", "--begin-pod", inside().c_str(), key().c_str(),
                  message().c_str(), nullptr);
            _exit(127);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    std::string inside() const { return dir.path() + "/inside"; }
    std::string key() const { return dir.path() + "/key/identity"; }
    std::string message() const { return dir.path() + "/message"; }

    TempDir dir;
};

fs::perms permissionsOf(const std::string& path) {
    return fs::status(path).permissions();
}

std::string contentOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a Pod begins with the agent's files, the place of code and an identity",
          "[unit][agent]") {
    const PodFolders pod;
    REQUIRE(pod.begin() == 0);
    // The volume of code is mounted there, below a folder that is read-only by then.
    REQUIRE(std::string(pool::kRunPlace) == "/.hearth/run");
    const std::string run = pod.inside() + "/run";
    REQUIRE(fs::is_directory(run));
    CHECK(fs::is_empty(run));
    CHECK(permissionsOf(run) == fs::perms(0755));
    CHECK(contentOf(pod.inside() + "/agent") == contentOf(HEARTH_AGENT_PATH));
    CHECK((permissionsOf(pod.inside() + "/agent") & fs::perms(0111)) == fs::perms(0111));
    CHECK((permissionsOf(pod.inside() + "/agent") & fs::perms(0222)) == fs::perms::none);
    CHECK(contentOf(pod.inside() + "/python/run.py") == "print(1)\n");
    CHECK_FALSE(fs::exists(fs::symlink_status(pod.inside() + "/link")));
    CHECK(permissionsOf(pod.key()) == fs::perms(0600));
    CHECK(agent::secure::AgentPublicKey::parse(contentOf(pod.message())));
}

TEST_CASE("a Pod whose start was cut short begins anew", "[unit][agent]") {
    const PodFolders pod;
    REQUIRE(pod.begin() == 0);
    const std::string before = contentOf(pod.message());
    std::ofstream(pod.dir.path() + "/image/python/run.py") << "print(2)\n";
    REQUIRE(pod.begin() == 0);
    CHECK(contentOf(pod.inside() + "/python/run.py") == "print(2)\n");
    CHECK(fs::is_directory(pod.inside() + "/run"));
    CHECK(contentOf(pod.message()) != before);
}

TEST_CASE("a Pod without the volume of the agent does not begin, and tells no identity",
          "[unit][agent]") {
    const PodFolders pod;
    fs::remove(pod.inside());
    CHECK(pod.begin() == 1);
    CHECK_FALSE(fs::exists(pod.message()));
}
