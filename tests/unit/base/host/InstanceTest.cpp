#include <sys/time.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "base/host/Instance.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;

namespace fs = std::filesystem;

namespace {

/// Creates a run_dir as a server leaves it, unchanged for two minutes. Returns its path.
std::string leftBy(const TempDir& root, const std::string& name) {
    const std::string path = root.file(name);
    for (const char* folder : {"marks", "sockets", "sandboxes", "runc"}) {
        fs::create_directories(path + "/" + folder);
    }
    writeText(path + "/lock", "");
    writeText(path + "/marks/claimed", std::string(4096, '\0'));
    const timeval then{::time(nullptr) - 120, 0};
    const timeval times[] = {then, then};
    REQUIRE(::utimes(path.c_str(), times) == 0);
    return path;
}

}  // namespace

TEST_CASE("the folders of servers that have gone are removed, those of others stay",
          "[unit][base]") {
    const TempDir root;
    const std::string own = leftBy(root, "000000000000");
    const std::string dead = leftBy(root, "aaaaaaaaaaa1");
    const std::string empty = root.file("aaaaaaaaaaa2");
    fs::create_directory(empty);
    fs::last_write_time(empty, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    const std::string with_socket = leftBy(root, "aaaaaaaaaaa3");
    writeText(with_socket + "/sockets/sb_1.sock", "");
    const std::string with_claim = leftBy(root, "aaaaaaaaaaa4");
    writeText(with_claim + "/marks/claimed", std::string(100, '\0') + "sb_1");
    const std::string other = leftBy(root, "uids");
    const std::string going = leftBy(root, "aaaaaaaaaaa7.going-00");
    const std::string young = leftBy(root, "aaaaaaaaaaa5");
    fs::last_write_time(young, fs::file_time_type::clock::now());
    const Instance served{"aaaaaaaaaaa6", root.path(), leftBy(root, "aaaaaaaaaaa6")};
    const Fd lock = lockInstance(served);
    fs::last_write_time(served.run_dir, fs::file_time_type::clock::now() - std::chrono::minutes(2));

    removeDeadRunDirs({"000000000000", root.path(), own});
    CHECK_FALSE(fs::exists(dead));
    CHECK_FALSE(fs::exists(empty));
    CHECK_FALSE(fs::exists(going));
    for (const std::string& path : {own, with_socket, with_claim, other, young, served.run_dir}) {
        INFO(path);
        CHECK(fs::exists(path));
    }
    CHECK_FALSE(removeDeadRunDir(served.run_dir));
}

TEST_CASE("a second server is refused, and the next one gets the folder anew", "[unit][base]") {
    const TempDir root;
    const Instance instance{"aaaaaaaaaaaa", root.path(), root.file("aaaaaaaaaaaa")};
    {
        const Fd lock = lockInstance(instance);
        CHECK(codeOf([&] { const Fd second = lockInstance(instance); }) == ErrorCode::Conflict);
    }
    CHECK(removeDeadRunDir(instance.run_dir));
    CHECK_FALSE(fs::exists(instance.run_dir));
    CHECK(lockInstance(instance));
}

TEST_CASE("the removal of dead folders never removes the folder of a new server", "[unit][base]") {
    const TempDir root;
    const Instance instance{"aaaaaaaaaaaa", root.path(), root.file("aaaaaaaaaaaa")};
    std::atomic<int> removed = 0;
    std::atomic<int> failures = 0;
    std::jthread remover([&](const std::stop_token& end) {
        while (!end.stop_requested()) {
            try {
                removed += removeDeadRunDir(instance.run_dir) ? 1 : 0;
            } catch (const std::system_error&) {
                ++failures;
            }
        }
    });
    int lost = 0;
    for (int turn = 0; turn < 20'000 && removed < 50; ++turn) {
        try {
            const Fd lock = lockInstance(instance);
            fs::create_directory(instance.run_dir + "/sockets");
            std::this_thread::yield();
            if (!fs::exists(instance.run_dir + "/sockets")) ++lost;
        } catch (const Error&) {  // the remover was always first
            continue;
        } catch (const std::system_error&) {
            ++lost;
        }
    }
    remover.request_stop();
    remover.join();
    CHECK(lost == 0);
    CHECK(failures == 0);
    CHECK(removed > 0);
}
