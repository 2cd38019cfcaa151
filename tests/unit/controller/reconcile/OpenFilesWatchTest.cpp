#include <catch2/catch.hpp>

#include "tests/unit/controller/Principals.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMost = 1'000'000;

struct FilesWatch : Filled {
    FilesWatch() : Filled(4) {}

    WorkspaceView open(const Principal& who) { return house.open(who, House::request()); }
    void hold(const WorkspaceView& view, std::uint64_t files) {
        runtime.holdFiles(view.sandbox_id, files, kMost);
    }
    bool ended(const WorkspaceView& view) {
        const std::shared_ptr<Workspace> workspace = house.table.find(view.id);
        return workspace == nullptr || workspace->endReason() == EndReason::OpenFiles;
    }
    Principal other() const {
        Principal who = house.who;
        who.tenant = "other";
        return who;
    }
};

}  // namespace

TEST_CASE("no workspace ends below half of the machine's open files", "[unit][controller]") {
    FilesWatch w;
    const WorkspaceView view = w.open(w.house.who);
    CHECK(w.house.files.look().again == 500ms);
    w.hold(view, kMost / 2 - 1);
    CHECK(w.house.files.look().again == 100ms);  // looks more often
    CHECK_FALSE(w.ended(view));
}

TEST_CASE("the tenant that holds the most open files loses its largest workspace, one at a time",
          "[unit][controller]") {
    FilesWatch w;
    const WorkspaceView small = w.open(w.house.who);
    const WorkspaceView large = w.open(w.house.who);
    const WorkspaceView single = w.open(w.other());
    w.hold(small, 190'000);
    w.hold(large, 195'000);
    w.hold(single, 200'000);  // the largest of all, but its tenant has less
    w.house.files.look();
    CHECK(w.ended(large));
    CHECK_FALSE(w.ended(small));
    CHECK_FALSE(w.ended(single));
    // Its files are still open, which is no reason to end the next one.
    w.house.files.look();
    CHECK_FALSE(w.ended(small));
    CHECK_FALSE(w.ended(single));
    CHECK(toldOf(w.house, "workspace.reclaimed") == 1);
    CHECK(w.house.logged("workspace.open_files").size() == 1);
    REQUIRE(w.house.settleUntil([&] { return !w.house.warm.find(large.sandbox_id); }));
    w.house.files.look();
    CHECK_FALSE(w.ended(small));
    try {
        static_cast<void>(w.house.workspaces.get(w.house.who, large.id));
        FAIL("it has not ended");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Gone);
        CHECK(e.endedReason() == "open_files");
    }
}

TEST_CASE("open files outside of sandboxes end no workspace", "[unit][controller]") {
    FilesWatch w;
    const WorkspaceView view = w.open(w.house.who);
    w.hold(view, kMost / 8 - 1);
    w.runtime.holdFiles("sb_of_somebody_else", kMost / 2, kMost);
    CHECK(w.house.files.look().again == 100ms);
    CHECK_FALSE(w.ended(view));
}
