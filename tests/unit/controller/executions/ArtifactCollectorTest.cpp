#include "controller/executions/ArtifactCollector.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

ExecutionRequest collecting(const std::string& line, std::vector<std::string> patterns) {
    ExecutionRequest request;
    request.command = line;
    request.timeout = std::chrono::hours(2);
    request.background = true;
    request.collect = std::move(patterns);
    return request;
}

void write(House& house, const std::string& workspace, const std::string& path,
           const std::string& text) {
    std::size_t at = 0;
    house.workspaces.writeFile(house.who, workspace, path, std::nullopt,
                               [&](char* buffer, std::size_t size) {
                                   const std::size_t n = text.copy(buffer, size, at);
                                   at += n;
                                   return n;
                               });
}

std::string openWorkspace(House& house) {
    house.declare("p", smallSpec(1));
    house.recover();
    REQUIRE(house.filled("p", 1));
    const std::string id = house.open(house.who, House::request()).id;
    house.ground.manual.advance(1s);  // separates earlier files from later ones
    return id;
}

std::string pathsOf(const ExecutionView& view) {
    std::string paths;
    for (const Artifact& artifact : view.artifacts) paths += artifact.path + " ";
    return paths;
}

bool settled(House& house, const std::string& execution) {
    // The clock must rest here: it limits the time that copying may take.
    if (!eventually([&] { return house.executions.find(house.who, execution)->finished(); })) {
        return false;
    }
    return house.settleUntil([&] {
        return house.executions.find(house.who, execution)->finished() &&
               house.journal.hasExecution(execution);
    });
}

/// A server that dies during an execution that is to deliver its text files.
struct Interrupted : Ground {
    std::string workspace;
    std::string execution;

    Interrupted() {
        House house(*this);
        workspace = openWorkspace(house);
        write(house, workspace, "before.txt", "before");
        manual.advance(1s);
        execution = house.executions
                        .start(house.who, workspace, collecting("sleep 100", {"*.txt", "out/**"}))
                        ->id();
        write(house, workspace, "a.txt", "text");
        write(house, workspace, "b.md", "not asked for");
        write(house, workspace, "out/c", "asked for");
    }
};

}  // namespace

TEST_CASE("an execution found again after a restart still gives its artifacts at its end",
          "[unit][controller]") {
    Interrupted ground;
    House house(ground);
    house.recover();
    CHECK_FALSE(house.executions.find(house.who, ground.execution)->finished());
    write(house, ground.workspace, "later.txt", "with the second server");
    ground.manual.advance(101s);
    REQUIRE(settled(house, ground.execution));
    const ExecutionView view = house.executions.find(house.who, ground.execution)->view();
    CHECK(view.status == ExecutionStatus::Ok);
    CHECK(pathsOf(view) == "a.txt later.txt out/c ");
    CHECK_FALSE(view.artifacts_truncated);
    for (const Artifact& artifact : view.artifacts) CHECK(artifact.url != "");
}

TEST_CASE("an execution that ended while no server ran gives its artifacts to the next one",
          "[unit][controller]") {
    Interrupted ground;
    ground.manual.advance(101s);
    House house(ground);
    house.recover();
    REQUIRE(settled(house, ground.execution));
    CHECK(pathsOf(house.executions.find(house.who, ground.execution)->view()) == "a.txt out/c ");
}

TEST_CASE("an execution without artifact patterns gives none after a restart",
          "[unit][controller]") {
    Ground ground;
    std::string workspace;
    std::string execution;
    {
        House house(ground);
        workspace = openWorkspace(house);
        execution = house.executions.start(house.who, workspace, collecting("sleep 1", {}))->id();
        write(house, workspace, "a.txt", "text");
    }
    House house(ground);
    house.recover();
    ground.manual.advance(2s);
    REQUIRE(settled(house, execution));
    CHECK(pathsOf(house.executions.find(house.who, execution)->view()).empty());
}

TEST_CASE("files beyond the limit of artifacts are reported, and removed copies are, too",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    const std::string workspace = openWorkspace(house);
    const std::string execution =
        house.executions.start(house.who, workspace, collecting("sleep 1", {"**"}))->id();
    for (int i = 0; i < 257; ++i) write(house, workspace, "f" + std::to_string(i), "x");
    ground.manual.advance(2s);
    REQUIRE(settled(house, execution));
    const ExecutionView view = house.executions.find(house.who, execution)->view();
    CHECK(view.artifacts.size() == 256);
    CHECK(view.artifacts_truncated);
    CHECK(view.artifacts[255].url != "");

    std::filesystem::remove_all(ground.dir.file("artifacts"));
    ExecutionView later;
    // An execution that just ended is reported from memory until the journal has it.
    REQUIRE(house.settleUntil([&] {
        later = house.executions.find(house.who, execution)->view();
        return later.artifacts.size() == 256 && later.artifacts[255].not_kept == NotKept::Gone;
    }));
    CHECK(later.artifacts[255].url == "");
    CHECK(later.artifacts[255].sha256 == view.artifacts[255].sha256);
}

TEST_CASE("links to the copies of a one shot end with them", "[unit][controller]") {
    Ground ground;
    House house(ground);
    openWorkspace(house);
    REQUIRE(house.filled("p", 1));
    const auto shot = house.runOnce(house.who, House::request(), collecting("sleep 1", {"**"}));
    write(house, shot->view().workspace_id, "f", "x");
    ground.manual.advance(2s);
    REQUIRE(settled(house, shot->id()));
    const ExecutionView view = house.executions.find(house.who, shot->id())->view();
    REQUIRE(view.artifacts.size() == 1);
    CHECK(view.artifacts[0].expires_ms <=
          toUnixMillis(ground.clock.wall()) + std::chrono::milliseconds(1h).count());
}
