#include <atomic>
#include <catch2/catch.hpp>
#include <future>

#include "api/mcp/http/FileWatch.h"
#include "tests/support/FakeServices.h"
#include "tests/support/Support.h"

namespace hearth::mcp {
namespace {

using test::FakeServices;

const controller::Principal kSlow{"slow", controller::Role::User, ""};
const controller::Principal kOther{"other", controller::Role::User, ""};

std::string uriOf(const std::string& workspace) {
    return "workspace://" + workspace + "/files/f";
}

}  // namespace

TEST_CASE("silent sandboxes of one tenant do not delay notifications of another", "[unit][mcp]") {
    FakeServices house;
    // All that the watch's threads use outlives it; a promise ends before it, and so lets them go.
    const std::string theirs = house.open(kOther, {}).id;
    std::atomic<int> held{0};
    std::atomic<bool> told{false};
    bool came = false;
    int most = 0;
    {
        FileWatch watch(house.services, [&](const std::string& tenant, const std::string&) {
            if (tenant == kOther.tenant) told = true;
        });
        std::promise<void> over;
        std::vector<std::shared_ptr<void>> kept;
        std::vector<std::string> silent;
        for (int i = 0; i < 6; ++i) {
            silent.push_back(house.open(kSlow, {}).id);
            kept.push_back(watch.watch(kSlow, uriOf(silent.back())));
        }
        kept.push_back(watch.watch(kOther, uriOf(theirs)));
        house.workspaces.before_stat = [&,
                                        until = over.get_future().share()](const std::string& id) {
            if (id == theirs) return;
            ++held;
            until.wait();
        };
        for (const std::string& id : silent) watch.look(id);
        REQUIRE(test::eventually([&] { return held > 0; }));
        house.workspaces.overwrite(theirs, "f", "1");
        watch.look(theirs);
        came = test::eventually([&] { return told.load(); });
        most = held;
        over.set_value();
    }
    CHECK(came);
    CHECK(most <= 2);  // of four threads
}

TEST_CASE("a change during a comparison causes another comparison", "[unit][mcp]") {
    FakeServices house;
    std::atomic<int> stats{0};
    std::atomic<int> told{0};
    FileWatch watch(house.services, [&](const std::string&, const std::string&) { ++told; });
    std::promise<void> first;
    const std::string id = house.open(kOther, {}).id;
    const std::shared_ptr<void> kept = watch.watch(kOther, uriOf(id));
    house.workspaces.before_stat = [&, until = first.get_future().share()](const std::string&) {
        if (++stats == 1) until.wait();
    };
    watch.look(id);
    REQUIRE(test::eventually([&] { return stats == 1; }));
    watch.look(id);
    first.set_value();
    CHECK(test::eventually([&] { return stats == 2; }));
    house.workspaces.overwrite(id, "f", "1");
    watch.look(id);
    CHECK(test::eventually([&] { return told == 1; }));
}

}  // namespace hearth::mcp
