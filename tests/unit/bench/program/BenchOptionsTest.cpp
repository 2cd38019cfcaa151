#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/command/Command.h"
#include "tests/bench/program/BenchCommand.h"
#include "tests/bench/program/BenchFakeServer.h"
#include "tests/bench/program/BenchOptions.h"
#include "tests/bench/program/BenchPool.h"
#include "tests/bench/program/BenchPools.h"
#include "tests/bench/program/BenchThroughput.h"
#include "tests/bench/program/measure/HostMemory.h"

using namespace hearth;
using namespace hearth::cli;

namespace {

BenchPlan plan(const std::vector<std::string>& arguments) {
    return benchPlan(Options::parse(makeBench().spec, arguments,
                                    [](const std::string&) { return std::nullopt; }));
}

}  // namespace

TEST_CASE("without flags the bench does 150 rounds of everything", "[unit][cli]") {
    const BenchPlan all = plan({});
    CHECK(all.rounds == 150);
    CHECK(all.names.size() == benchNames().size());
    CHECK(all.clients.empty());
    CHECK(all.pools.empty());
    CHECK_FALSE(all.docker);
    CHECK(all.measuresServer());
}

TEST_CASE("lists of numbers keep their order and drop repeats", "[unit][cli]") {
    const BenchPlan some = plan({"--concurrency", "4,1,4", "--pools=10,1000", "--only", "cold"});
    CHECK(some.clients == std::vector<unsigned>{4, 1});
    CHECK(some.pools == std::vector<unsigned>{10, 1000});
    CHECK(some.names == std::set<std::string>{"cold"});
}

TEST_CASE("invalid numbers and numbers out of range are refused", "[unit][cli]") {
    for (const char* list : {"", "0", "1,", "1,,2", "x", "4x", "-1", "101", "99999999999999"}) {
        CAPTURE(list);
        CHECK_THROWS_AS(plan({"--concurrency", list}), UsageError);
    }
    CHECK_THROWS_AS(plan({"--pools", "1001"}), UsageError);
    CHECK_THROWS_AS(plan({"--rounds", "-1"}), UsageError);
}

TEST_CASE("flags of the bench that make no sense together are refused", "[unit][cli]") {
    CHECK_THROWS_AS(plan({"--rounds", "0"}), UsageError);
    CHECK_NOTHROW(plan({"--rounds", "0", "--fake-pools", "10"}));
    CHECK_FALSE(plan({"--rounds", "0", "--fake-pools", "10"}).measuresServer());
    CHECK_THROWS_AS(plan({"--rounds", "0", "--pools", "1", "--svg", "x"}), UsageError);
    CHECK_THROWS_AS(plan({"--rounds", "0", "--pools", "1", "--against", "docker"}), UsageError);
    CHECK_THROWS_AS(plan({"--against", "podman"}), UsageError);
    CHECK_THROWS_AS(plan({"--docker-image", "a", "--docker-rootfs", "b"}), UsageError);
}

TEST_CASE("a pool of the bench has the template of the measured one", "[unit][cli]") {
    const Json like = {{"spec",
                        {{"template", {{"image", "x"}, {"prewarm", {{"imports", {"a"}}}}}},
                         {"warm", {{"min", 2}, {"max", 20}, {"parallelCreates", 3}}},
                         {"limits", {{"members", 4}}}}}};
    const Json made = benchManifest("b", like, {.warm = 7, .members = 5000});
    CHECK(made["spec"]["template"] == like["spec"]["template"]);
    CHECK(made["spec"]["warm"] == Json({{"min", 7}, {"max", 7}, {"parallelCreates", 3}}));
    CHECK(made["spec"]["limits"]["members"] == BenchPool::kMostMembers);
    const Json numpy =
        benchManifest("b", like, {.template_patch = R"({"prewarm":{"imports":["numpy"]}})"});
    CHECK(numpy["spec"]["template"]["image"] == "x");
    CHECK(numpy["spec"]["template"]["prewarm"]["imports"] == Json::array({"numpy"}));
}

TEST_CASE("pools of the bench leave memory for the rest of the machine", "[unit][cli]") {
    constexpr std::uint64_t kMiB = 1U << 20U;
    CHECK(sandboxesThatFit(512 * kMiB, kMiB) == 0);
    CHECK(sandboxesThatFit(612 * kMiB, 10 * kMiB) == 10);
    CHECK(sandboxesThatFit(16384 * kMiB, 1024 * kMiB) == 14);
    CHECK(sandboxesThatFit(1ULL << 50U, kMiB) == BenchPool::kMostMembers);
    CHECK(sandboxesThatFit(1ULL << 50U, 0) == 0);
}

TEST_CASE("the throughput's pool has two sandboxes a client, if they fit", "[unit][cli]") {
    ThroughputPlan wanted{
        .clients = {1, 64, 4}, .operations = 1, .python = true, .most_warm = 1000};
    CHECK(throughputPoolSize(wanted) == 128);
    wanted.most_warm = 150;
    CHECK(throughputPoolSize(wanted) == 86);
    wanted.most_warm = 127;
    CHECK(throughputPoolSize(wanted) == 0);
    wanted.clients = {1};
    CHECK(throughputPoolSize(wanted) == 32);
}

TEST_CASE("the URL of a started server stands in its greeting", "[unit][cli]") {
    CHECK(greetedUrl("Hearth 1 serves\n  REST        http://127.0.0.1:4711/v1      (docs)\n") ==
          "http://127.0.0.1:4711");
    CHECK(greetedUrl("Hearth 1 serves\n  REST        http://127.0.0.1:47").empty());
    CHECK(greetedUrl("error: no\n").empty());
}

TEST_CASE("a field of meminfo is found by its whole name", "[unit][cli]") {
    const std::string text = "MemTotal: 10 kB\nSlabX:  1 kB\nSlab:   2 kB\n";
    CHECK(meminfoField(text, "Slab") == 2048);
    CHECK(meminfoField(text, "Shmem") == 0);
}
