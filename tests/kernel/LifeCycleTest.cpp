#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <iostream>
#include <random>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

using Ms = std::chrono::duration<double, std::milli>;
using pool::SandboxId;

double timed(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return Ms(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

TEST_CASE("a sandbox is made, listed with its labels, used and ended without a trace",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const auto sandboxes = host.runtime().list();
    REQUIRE(sandboxes.size() == 1);
    CHECK(sandboxes[0].id == id);
    CHECK(sandboxes[0].alive);
    CHECK(sandboxes[0].labels == host.spec().labels);
    CHECK(sandboxes[0].created_unix_ms > 0);
    const auto found = host.runtime().find(id);
    REQUIRE(found);
    CHECK((found->alive && found->listening));
    CHECK(found->labels == host.spec().labels);
    CHECK_FALSE(host.runtime().find(newId("sb_")));
    {
        SmallAgent agent(host.runtime().connect(id));
        CHECK(agent.hello().at("sandbox") == id);
        CHECK(agent.run("echo hello").output == "hello\n");
        const auto usage = host.runtime().usage(id);
        REQUIRE(usage);
        CHECK(usage->memory_bytes > 0);
        CHECK(usage->memory_peak_bytes >= usage->memory_bytes / 2);
        CHECK(usage->cpu_ns > 0);
        CHECK(usage->processes >= 1);
    }
    host.runtime().destroy(id);
    CHECK(host.runtime().list().empty());
    CHECK_FALSE(host.runtime().usage(id));
    CHECK(host.leftovers() == std::vector<std::string>{});
    CHECK_THROWS_AS(host.runtime().connect(id), std::system_error);
}

TEST_CASE("destroy may be repeated, at once from two threads, and for what never was",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    std::exception_ptr failed;
    {
        std::jthread other([&] {
            try {
                host.runtime().destroy(id);
            } catch (const std::exception&) {
                failed = std::current_exception();
            }
        });
        host.runtime().destroy(id);
    }
    CHECK_FALSE(failed);
    host.runtime().destroy(id);
    host.runtime().destroy(newId("sb_"));
    CHECK(host.leftovers().empty());
}

TEST_CASE("sandboxes in a row leave nothing", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    std::vector<double> created;
    std::vector<double> destroyed;
    for (int i = 0; i < (kind() == Kind::Oci ? 20 : 6); ++i) {
        SandboxId id;
        created.push_back(timed([&] { id = host.create(); }));
        destroyed.push_back(timed([&] { host.runtime().destroy(id); }));
    }
    std::cout << "create p50 " << median(created) << " ms, destroy p50 " << median(destroyed)
              << " ms\n";
    CHECK(host.leftovers().empty());
}

TEST_CASE("sandboxes live on when what made them dies, and the next one ends them",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId kept = host.create();
    const SandboxId orphan = host.create();
    host.kill();
    host.start();
    CHECK(host.runtime().list().size() == 2);
    host.runtime().sweep({kept});
    const auto left = host.runtime().list();
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == kept);
    CHECK(left[0].alive);
    CHECK(SmallAgent(host.runtime().connect(kept)).run("echo still here").output == "still here\n");
    host.runtime().destroy(kept);
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: a launcher killed at any moment of a create leaves nothing after a sweep",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    std::mt19937 random(20261121);
    std::uniform_int_distribution<int> delay(0, 120);
    for (int round = 0; round < 10; ++round) {
        const pid_t launcher = host.launcherPid();
        {
            std::jthread creator([&] {
                try {
                    host.create();
                } catch (const std::exception&) {
                    return;  // the launcher was killed first: the sweep must handle that
                }
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(delay(random)));
            ::kill(launcher, SIGKILL);
        }
        host.stop();
        host.start();
        host.runtime().sweep({});
        const auto left = host.leftovers();
        INFO("round " << round << ": " << (left.empty() ? "" : left.front()));
        REQUIRE(left.empty());
    }
}

TEST_CASE("a sandbox is made once: a second create is refused and leaves the first alone",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    CHECK_THROWS(host.runtime().create(id, host.spec()));
    CHECK(agent.run("echo the first").output == "the first\n");
    host.runtime().sweep({});
    CHECK(host.runtime().list().size() == 1);
    host.stop();
    host.start();
    CHECK_THROWS(host.runtime().create(id, host.spec()));
    CHECK(SmallAgent(host.runtime().connect(id)).run("echo still").output == "still\n");
    host.runtime().destroy(id);
    CHECK(host.leftovers().empty());
}

TEST_CASE("the deadline of an execution ends all of its descendants", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const auto outcome =
        agent.run("(setsid sleep 777 &) ; (trap '' TERM HUP; sleep 777 &) ; sleep 777", 500);
    CHECK(outcome.result.at("status") == "timeout");
    CHECK(agent
              .run("for i in 1 2 3 4 5 6 7 8 9; do ps | grep -q '[s]leep 777' || break; "
                   "usleep 100000; done; ps | grep -c '[s]leep 777'")
              .output == "0\n");
    host.runtime().destroy(id);
}

TEST_CASE("a sweep spares what was made since the start", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    host.runtime().sweep({});
    CHECK(host.runtime().list().size() == 1);
    host.runtime().destroy(id);
}

TEST_CASE("oci: what a sweep cannot remove is told, and all else goes", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId stuck = host.create();
    host.create();
    const auto group = sys::Cgroups::detect().directory("pids", host.cgroupOf(stuck));
    REQUIRE(group);
    const std::string nested = *group + "/nested";
    REQUIRE(::mkdir(nested.c_str(), 0755) == 0);
    host.kill();
    host.start();
    const std::vector<pool::Leftover> left = host.runtime().sweep({});
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == stuck);
    CHECK(left[0].why.find("control group") != std::string::npos);
    const auto found = host.runtime().list();
    REQUIRE(found.size() == 1);
    CHECK(found[0].id == stuck);
    CHECK_FALSE(found[0].alive);
    REQUIRE(::rmdir(nested.c_str()) == 0);
    CHECK(host.runtime().sweep({}).empty());
    CHECK(host.leftovers().empty());
}

TEST_CASE("a create that fails leaves nothing", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    pool::SandboxSpec spec = host.spec();
    spec.image_digest = "sha256:" + std::string(64, '0');
    CHECK_THROWS_AS(host.runtime().create(newId("sb_"), spec), Error);
    CHECK(host.leftovers().empty());
    CHECK_THROWS_AS(host.runtime().resolveImage("nothing"), Error);
}

TEST_CASE("oci: a workspace larger than the disk is refused and leaves nothing", "[kernel]") {
    if (!canRun()) return;
    Host host;
    pool::SandboxSpec spec = host.spec();
    spec.limits.workspace_bytes = 16ULL << 40U;  // more than the disk has
    try {
        host.runtime().create(newId("sb_"), spec);
        FAIL("a workspace larger than the disk was made");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::DiskFull);
    }
    CHECK(host.leftovers().empty());
}

TEST_CASE("two instances side by side do not touch each other", "[kernel][docker]") {
    if (!canRun()) return;
    Host first(false);
    Host second(false);
    first.start();
    second.start();
    const SandboxId mine = first.create();
    const SandboxId other = second.create();
    first.runtime().sweep({});
    first.runtime().destroy(other);  // another instance's: nothing happens
    CHECK(second.runtime().list().size() == 1);
    CHECK(SmallAgent(second.runtime().connect(other)).run("echo 2").output == "2\n");
    first.runtime().destroy(mine);
    CHECK(first.leftovers().empty());
    CHECK(second.runtime().list().at(0).alive);
    second.runtime().destroy(other);
    CHECK(second.leftovers().empty());
}

TEST_CASE("several sandboxes are made and ended at once", "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    std::vector<std::string> failures(6);
    {
        std::vector<std::jthread> threads;
        for (std::string& failure : failures) {
            threads.emplace_back([&host, &failure] {
                try {
                    const SandboxId id = host.create();
                    host.runtime().destroy(id);
                } catch (const std::exception& e) {
                    failure = e.what();
                }
            });
        }
    }
    CHECK(failures == std::vector<std::string>(6));
    CHECK(host.leftovers().empty());
}

TEST_CASE("a fork bomb ends within three seconds", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    agent.start("probe bomb");
    for (int i = 0; i < 500 && host.runtime().usage(id)->processes < host.spec().limits.pids; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK(host.runtime().usage(id)->processes == host.spec().limits.pids);
    const double took = timed([&] { host.runtime().destroy(id); });
    std::cout << "fork bomb ended in " << took << " ms\n";
    CHECK(took < 3000);
    CHECK(host.leftovers().empty());
}

}  // namespace hearth::kernel_test
