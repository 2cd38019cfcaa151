#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

using pool::SandboxId;
using pool::SandboxLimits;

constexpr std::uint64_t kMiB = 1ULL << 20U;

/// Returns a limit of a sandbox's group as the kernel has it now.
std::string inForce(const Host& host, const SandboxId& id, const char* controller,
                    const std::string& v1, const std::string& v2) {
    const sys::Cgroups cgroups = sys::Cgroups::detect();
    const auto directory = cgroups.directory(controller, host.cgroupOf(id));
    if (!directory) return "no controller";
    const bool unified = cgroups.version() == sys::CgroupVersion::V2;
    std::string text = sys::readFile(*directory + "/" + (unified ? v2 : v1)).value_or("missing");
    return text.substr(0, text.find_first_of(" \n"));
}

void checkHeld(const Host& host, const SandboxId& id, const SandboxLimits& limits) {
    const std::string memory = std::to_string(limits.memory_bytes);
    CHECK(inForce(host, id, "memory", "memory.limit_in_bytes", "memory.max") == memory);
    CHECK(inForce(host, id, "cpu", "cpu.cfs_quota_us", "cpu.max") ==
          std::to_string(limits.milli_cpu * 100));
    CHECK(inForce(host, id, "pids", "pids.max", "pids.max") == std::to_string(limits.pids));
}

SandboxLimits less(const Host& host) {
    SandboxLimits limits = host.spec().limits;
    limits.milli_cpu = 250;
    limits.memory_bytes = 64 * kMiB;
    limits.pids = 24;
    return limits;
}

}  // namespace

TEST_CASE("a sandbox that runs is held to less by the kernel", "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    checkHeld(host, id, host.spec().limits);
    CHECK_FALSE(host.runtime().narrow(id, less(host)));
    checkHeld(host, id, less(host));
    CHECK_FALSE(host.runtime().narrow(id, less(host)));  // nothing changes
    checkHeld(host, id, less(host));

    CHECK(agent.run("exec probe memory").signal() == 9);
    CHECK(host.runtime().usage(id)->memory_peak_bytes <= 64 * kMiB);
    CHECK(agent.run("exec probe bomb").exitCode() != -1);
    CHECK(host.runtime().usage(id)->processes <= 24);
    CHECK(agent.run("echo alive").output == "alive\n");
    host.runtime().destroy(id);
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: the launcher gives no sandbox more than it was made with, or was held to since",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const auto refused = [&](const SandboxLimits& wanted) {
        CHECK_THROWS_AS(host.runtime().narrow(id, wanted), std::runtime_error);
    };
    SandboxLimits more = host.spec().limits;
    more.pids += 1;
    refused(more);
    more = host.spec().limits;
    more.memory_bytes += kMiB;
    refused(more);
    more = host.spec().limits;
    more.milli_cpu += 1;
    refused(more);
    checkHeld(host, id, host.spec().limits);
    REQUIRE_FALSE(host.runtime().narrow(id, less(host)));
    refused(host.spec().limits);
    more = less(host);
    more.milli_cpu += 10;
    more.pids -= 1;  // not even if another limit is lowered
    refused(more);
    checkHeld(host, id, less(host));
    host.runtime().destroy(id);
    try {
        host.runtime().narrow(id, less(host));
        FAIL("it was narrowed");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::NotFound);
    }
    CHECK(host.leftovers().empty());
}

TEST_CASE("a limit that is in use already is told, and the agent lives",
          "[kernel][docker][remote]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    agent.start("exec tail -c 48000000 /dev/zero");  // keeps what it reads
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (host.runtime().usage(id)->memory_bytes < 48'000'000 &&
           std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    SandboxLimits limits = host.spec().limits;
    limits.memory_bytes = 32 * kMiB;
    const auto memory = host.runtime().narrow(id, limits);
    REQUIRE(memory);
    CHECK(memory->of == pool::LimitInUse::Of::Memory);
    CHECK(memory->used > 32 * kMiB);
    CHECK(memory->used <= host.spec().limits.memory_bytes);
    CHECK(agent.run("echo alive").output == "alive\n");

    agent.start("sleep 60 & sleep 60 & sleep 60 & sleep 60 & wait");
    while (host.runtime().usage(id)->processes < 7 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    limits = host.spec().limits;
    limits.pids = 6;
    const auto processes = host.runtime().narrow(id, limits);
    REQUIRE(processes);
    CHECK(processes->of == pool::LimitInUse::Of::Processes);
    CHECK(processes->used >= 6);
    host.runtime().destroy(id);
    CHECK(host.leftovers().empty());
}

TEST_CASE("a program sees its own control group with the limits in force, and no other's",
          "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    const SandboxId other = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const auto seen = [&agent](const std::string& v2, const std::string& v1) {
        const std::string top = "/sys/fs/cgroup/";
        std::string text = agent.run("cat " + top + v2 + " 2>/dev/null || cat " + top + v1).output;
        return text.substr(0, text.find_first_of(" \n"));
    };
    const auto check = [&](const SandboxLimits& limits) {
        CHECK(seen("memory.max", "memory/memory.limit_in_bytes") ==
              std::to_string(limits.memory_bytes));
        CHECK(seen("cpu.max", "cpu/cpu.cfs_quota_us") == std::to_string(limits.milli_cpu * 100));
        CHECK(seen("pids.max", "pids/pids.max") == std::to_string(limits.pids));
    };
    check(host.spec().limits);
    CHECK_FALSE(host.runtime().narrow(id, less(host)));
    check(less(host));
    // Every group is the root of what the sandbox sees.
    CHECK(agent.run("cut -d: -f3 /proc/self/cgroup | sort -u").output == "/\n");
    CHECK(agent.run("grep ' - cgroup' /proc/self/mountinfo | grep -v ' / /sys/fs/cgroup'")
              .output.empty());
    CHECK(agent.run("find /sys/fs/cgroup -mindepth 2 -type d").output.empty());
    // It cannot be changed, neither by its mode nor by its mount.
    CHECK(agent.run("find /sys/fs/cgroup -exec test -w {} ';' -print").output.empty());
    CHECK(agent.run("grep ' - cgroup' /proc/self/mountinfo | grep -v ' ro,nosuid,nodev,noexec'")
              .output.empty());
    CHECK(agent
              .run("mkdir /sys/fs/cgroup/memory/x /sys/fs/cgroup/x 2>/dev/null; ls -d "
                   "/sys/fs/cgroup/x /sys/fs/cgroup/memory/x 2>/dev/null")
              .output.empty());
    host.runtime().destroy(id);
    host.runtime().destroy(other);
}

TEST_CASE("oci: a sandbox's open files are counted, and its peak of memory once", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const std::uint64_t before = host.runtime().openFiles().at(id);
    CHECK(before > 0);
    agent.start("exec 4</dev/null 5</dev/null 6</dev/null 7</dev/null; sleep 60 & sleep 60");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (host.runtime().openFiles().at(id) < before + 8 &&
           std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK(host.runtime().openFiles().at(id) >= before + 8);
    REQUIRE(host.runtime().fileTable());
    CHECK(host.runtime().fileTable()->open > before);

    REQUIRE(host.runtime().takeMemoryPeak(id));
    agent.run("head -c 48000000 /dev/zero | tail -c 48000000 | wc -c");
    const std::uint64_t peak = host.runtime().usage(id)->memory_peak_bytes;
    CHECK(peak >= 48'000'000);
    CHECK(host.runtime().takeMemoryPeak(id).value() >= 48'000'000);
    CHECK(host.runtime().takeMemoryPeak(id).value() < 48'000'000);
    CHECK(host.runtime().usage(id)->memory_peak_bytes == peak);  // that of its life stays
    host.runtime().destroy(id);
    CHECK_FALSE(host.runtime().takeMemoryPeak(id));
}

}  // namespace hearth::kernel_test
