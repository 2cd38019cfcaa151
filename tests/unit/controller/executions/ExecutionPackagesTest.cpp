#include "controller/executions/ExecutionPackages.h"
#include "controller/packages/PackageSpec.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

ExecutionRequest code(std::vector<std::string> packages, bool automatic = false) {
    ExecutionRequest request;
    request.code = "echo 1";
    request.packages = std::move(packages);
    request.auto_packages = automatic;
    return request;
}

Json taskOf(const agent::PrepareWork& work) {
    return parseJson(work.input);
}

}  // namespace

TEST_CASE("packages of an execution are those of its language's index", "[unit][controller]") {
    const std::map<std::string, std::string> open;
    CHECK(taskOf(packagesFirst(code({"numpy==2.1"}), "python", open))["manager"] == "pip");
    for (const char* name : {"node", "javascript", "js"}) {
        CHECK(taskOf(packagesFirst(code({"@a/b@^1"}), name, open))["manager"] == "npm");
    }
    ExecutionRequest command = code({"six"});
    command.code.reset();
    command.command = "true";
    const Json task = taskOf(packagesFirst(command, "", open));
    CHECK(task["manager"] == "auto");
    CHECK(task["install"] == Json::array({"six"}));
    CHECK(task["imports"] == false);
    CHECK(packagesFirst(code({}, true), "python", open).with_code);
    CHECK_FALSE(packagesFirst(code({"six"}), "python", open).with_code);
    CHECK_FALSE(wantsPackages(code({})));
}

TEST_CASE("invalid packages, and imports of other languages than Python, are refused",
          "[unit][controller]") {
    const auto refused = [](const ExecutionRequest& request, const std::string& language) {
        return codeOf([&] { checkPackages(request, language); }) == ErrorCode::InvalidArgument;
    };
    CHECK(refused(code({"six", "--pre"}), "python"));
    CHECK(refused(code({"@a/b"}), "python"));
    CHECK(refused(code({"six==1"}), "node"));
    CHECK(refused(code({}, true), "node"));
    ExecutionRequest command = code({}, true);
    command.code.reset();
    CHECK(refused(command, ""));
    CHECK_NOTHROW(checkPackages(code({"@a/b"}), ""));
    CHECK_NOTHROW(checkPackages(code({"six"}, true), "python"));
    CHECK_NOTHROW(checkPackages(code({"six"}, true), "py"));
}

TEST_CASE("a workspace's report on packages is read in parts and within bounds",
          "[unit][controller]") {
    CHECK(readPackages({true, 7, "[1]\n", ""}).error == "it ended without an outcome");
    const RunPackages told =
        readPackages({true, 7,
                      "noise\n"
                      R"({"packages":{"a":{"version":"1"},"b":{"version":null},"c":3},)"
                      R"("unknown":{"x":"why","y":{}}})"
                      "\n",
                      ""});
    CHECK(told.installed == std::map<std::string, std::string>{{"a", "1"}});
    CHECK(told.not_installed == std::map<std::string, std::string>{{"x", "why"}});
    CHECK(told.duration_ms == 7);
    CHECK_FALSE(packageError(told, ExecutionStatus::Ok));
    CHECK(readPackages({false, 0, "", "x\nhearth: python3: not found\n"}).error ==
          "hearth: python3: not found");
    const RunPackages long_one =
        readPackages({false, 0, R"({"error":")" + std::string(9'000, 'x') + R"("})", ""});
    CHECK(long_one.error.size() == 2'000);
    Json many = Json::object();
    for (int i = 0; i < 999; ++i) many["p" + std::to_string(i)] = {{"version", "1"}};
    CHECK(readPackages({true, 0, dumpJson({{"packages", many}}), ""}).installed.size() <= 256);
}

TEST_CASE("an execution that could not begin has a PackageError with the reason",
          "[unit][controller]") {
    RunPackages packages;
    packages.error = "x: the index has no such package";
    packages.said = "ERROR: nothing";
    const std::optional<Json> error = packageError(packages, ExecutionStatus::Failed);
    REQUIRE(error);
    CHECK((*error)["name"] == "PackageError");
    CHECK((*error)["message"] == packages.error);
    CHECK((*error)["traceback"] == "ERROR: nothing\nPackageError: " + packages.error);
    CHECK((*packageError(packages, ExecutionStatus::Timeout))["message"] ==
          "the time limit ended it while packages were being installed");
}

TEST_CASE("an execution is prepared with its packages, and its record tells them",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(2);
    spec.network = egress::NetworkMode::Mirror;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    const std::string workspace = house.open(house.who, House::request()).id;
    const auto run = [&](const ExecutionRequest& request) {
        const auto execution = house.executions.start(house.who, workspace, request);
        REQUIRE(house.settleUntil([&] { return execution->finished(); }));
        REQUIRE(house.settleUntil(
            [&] { return house.journal.execution(execution->id()).has_value(); }));
        house.loop.settle();
        return house.executions.find(house.who, execution->id())->view();
    };
    const ExecutionView done = run(code({"six"}));
    CHECK(done.status == ExecutionStatus::Ok);
    CHECK(done.stdout_bytes == "1\n");
    REQUIRE(done.packages);
    CHECK(done.packages->done);
    const ExecutionView failed = run(code({"no-such"}));
    CHECK(failed.status == ExecutionStatus::Failed);
    CHECK(failed.stdout_bytes.empty());
    CHECK_FALSE(failed.exit_code);
    REQUIRE(failed.error);
    CHECK((*failed.error)["name"] == "PackageError");
    CHECK_FALSE(run(code({})).packages);
}

TEST_CASE("the preparation gets the package managers without an index, and the reason",
          "[unit][controller]") {
    using egress::NetworkMode;
    const auto none =
        shutWays(NetworkMode::None, {egress::IndexKind::Pypi, egress::IndexKind::Npm});
    CHECK(none.size() == 2);
    CHECK(none.at("pip").find("no way to a package index") != std::string::npos);
    const auto mirror = shutWays(NetworkMode::Mirror, {egress::IndexKind::Npm});
    CHECK(mirror.size() == 1);
    CHECK(mirror.at("pip") == "no Python index is mirrored: start hearth serve with --mirror-pypi");
    CHECK(shutWays(NetworkMode::Mirror, {egress::IndexKind::Pypi}).at("npm") ==
          "no npm registry is mirrored: start hearth serve with --mirror-npm");
    CHECK(shutWays(NetworkMode::Egress, {}).empty());
    CHECK(taskOf(packagesFirst(code({"six"}), "python", mirror))["shut"] == Json(mirror));
}

TEST_CASE("packages work without a network, and wrong names take no sandbox",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const auto shot = house.runOnce(house.who, House::request(), code({"six"}));
    REQUIRE(house.settleUntil([&] { return shot->finished(); }));
    CHECK(shot->view().status == ExecutionStatus::Ok);
    CHECK(codeOf([&] { house.runOnce(house.who, House::request(), code({"--pre"})); }) ==
          ErrorCode::InvalidArgument);
    CHECK(house.settleUntil([&] { return house.table.all().empty(); }));
}
