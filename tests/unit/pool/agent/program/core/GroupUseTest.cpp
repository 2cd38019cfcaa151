#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth;
using namespace hearth::agent::program;

namespace {

/// A folder with the files of a control group.
struct Group {
    Group() {
        char name[] = "/tmp/hearth-group-test-XXXXXX";
        place = mkdtemp(name);
    }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() {
        std::error_code ignored;
        std::filesystem::remove_all(place, ignored);
    }
    void put(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = std::filesystem::path(place) / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    Json told() const {
        Bound b({"HEARTH_AGENT_GROUP=" + place});
        const Outcome answer = b.client.ask({{"op", "usage"}});
        REQUIRE(answer.ok);
        REQUIRE(answer.body.contains("diskTotal"));
        return answer.body.value("group", Json());
    }

    std::string place;
};

}  // namespace

TEST_CASE("an agent reports the kernel's counts of its control group", "[unit][agent][program]") {
    const Group group;
    SECTION("version 2") {
        group.put("memory.events", "low 0\nhigh 9\nmax 8\noom 7\noom_kill 3\noom_group_kill 1\n");
        group.put("cpu.stat", "usage_usec 1500\nuser_usec 1\n");
        group.put("memory.current", "100\n");
        group.put("memory.peak", "200\n");
        CHECK(group.told() == Json{{"cpuNs", 1'500'000},
                                   {"memoryBytes", 100},
                                   {"memoryPeakBytes", 200},
                                   {"oomKills", 3}});
    }
    SECTION("version 2 of a kernel that keeps no peak") {
        group.put("memory.events", "oom_kill 0\n");
        group.put("cpu.stat", "usage_usec 2\n");
        group.put("memory.current", "100\n");
        CHECK(group.told() == Json{{"cpuNs", 2'000}, {"memoryBytes", 100}, {"oomKills", 0}});
    }
    SECTION("version 1") {
        group.put("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        group.put("memory/memory.usage_in_bytes", "100\n");
        group.put("memory/memory.max_usage_in_bytes", "200\n");
        group.put("cpuacct/cpuacct.usage", "77\n");
        CHECK(group.told() ==
              Json{{"cpuNs", 77}, {"memoryBytes", 100}, {"memoryPeakBytes", 200}, {"oomKills", 2}});
    }
}

TEST_CASE("an agent that cannot read all of its group reports none of it",
          "[unit][agent][program]") {
    const Group group;
    SECTION("there are no files") {}
    SECTION("one is missing") {
        group.put("memory.events", "oom_kill 1\n");
        group.put("memory.current", "100\n");
    }
    SECTION("the kernel counts no kills") {
        group.put("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
        group.put("memory/memory.usage_in_bytes", "100\n");
        group.put("cpuacct/cpuacct.usage", "77\n");
    }
    SECTION("one has no number") {
        group.put("memory.events", "oom_kill \n");
        group.put("cpu.stat", "usage_usec 1\n");
        group.put("memory.current", "100\n");
    }
    CHECK(group.told().is_null());
}
