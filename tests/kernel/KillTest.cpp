#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

using pool::SandboxId;

/// A sandbox with a program that runs, and one that its tenant has stopped.
class Bystanders {
public:
    explicit Bystanders(SmallAgent& agent) : agent_(agent) {
        agent_.start(
            "sleep 300 & kill -STOP $!; echo $! > /workspace/stopped; "
            "while :; do echo . >> /workspace/count; sleep 0.02; done");
        await([&] { return state() == "T" && count() > 0; });
    }

    bool areAsBefore() {
        const long before = count();
        return state() == "T" && await([&] { return count() > before + 5; });
    }

    /// Waits until the last process that hops has ended.
    bool hopEnds() {
        return await([&] { return pairs(agent_.run("probe hopped").output)["hopped"] == "0"; });
    }
    void awaitHop() {
        await([&] { return pairs(agent_.run("probe hopped").output)["hopped"] == "11"; });
    }

private:
    static bool await(const std::function<bool()>& what) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (!what()) {
            if (std::chrono::steady_clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return true;
    }
    long count() { return std::stol("0" + agent_.run("cat /workspace/count | wc -l").output); }
    std::string state() {
        return agent_
            .run("sed 's/.*) \\(.\\).*/\\1/' /proc/$(cat /workspace/stopped)/stat | tr -d '\\n'")
            .output;
    }

    SmallAgent& agent_;
};

}  // namespace

TEST_CASE("processes that hop by forking end with their execution, and no others",
          "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    Bystanders others(agent);
    for (int round = 0; round < 5; ++round) {
        CHECK(agent.run("exec probe hop", 300).result.at("status") == "timeout");
        CHECK(others.hopEnds());
        const std::string killed = agent.start("exec probe hop");
        others.awaitHop();
        agent.ask({{"op", "signal"}, {"id", killed}, {"signal", "KILL"}});
        CHECK(others.hopEnds());
    }
    // Those that outlive their first process end when the ended execution is killed.
    const std::string ended = agent.start("probe hop & sleep 0.2");
    others.awaitHop();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    agent.ask({{"op", "signal"}, {"id", ended}, {"signal", "KILL"}});
    CHECK(others.hopEnds());
    CHECK(others.areAsBefore());
    host.runtime().destroy(id);
}

TEST_CASE("oci: processes that hop by forking end with their context", "[kernel]") {
    if (!canRun()) return;
    Host host;
    sys::writeFile(
        host.names().rootfs() + "/" + host.spec().image_digest.substr(7) +
            "/etc/hearth/languages.json",
        R"({"hop": {"file": "f", "run": ["probe", "hop"], "context": ["probe", "hop"]}})", 0644);
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    Bystanders others(agent);
    for (int round = 0; round < 5; ++round) {
        agent.ask({{"op", "context"}, {"id", "c"}, {"language", "hop"}, {"env", Json::object()}});
        others.awaitHop();
        agent.ask({{"op", "contextEnd"}, {"id", "c"}});
        CHECK(others.hopEnds());
    }
    CHECK(others.areAsBefore());
    host.runtime().destroy(id);
}

}  // namespace hearth::kernel_test
