#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/kubernetes/Definitions.h"
#include "api/kubernetes/PoolObjects.h"
#include "tests/unit/api/kubernetes/Cluster.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;
using hearth::kubernetes::PoolObjects;
using hearth::kubernetes::test::kEvents;
using hearth::kubernetes::test::kPools;

namespace {

Json objectNamed(const std::string& name, int generation = 1, int warm = 1) {
    return {{"apiVersion", kPoolApiVersion},
            {"kind", kPoolKind},
            {"metadata", {{"name", name}, {"namespace", "x"}, {"generation", generation}}},
            {"spec", {{"template", {{"image", "python"}}}, {"warm", {{"min", warm}}}}}};
}

struct Place : kubernetes::test::Cluster {
    std::unique_ptr<PoolObjects> follow() {
        auto made =
            std::make_unique<PoolObjects>(config(), house->pools, ground.manual, house->log);
        REQUIRE(made->begin({}));
        return made;
    }
    Json status(const std::string& name) const { return Cluster::status(kPools, name); }
    std::string condition(const std::string& name, const std::string& type) const {
        return Cluster::condition(kPools, name, type);
    }
};

}  // namespace

TEST_CASE("existing objects become pools before the start goes on", "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("web", 1, 2));
    const auto objects = at.follow();
    REQUIRE(at.house->specs.find("web"));
    CHECK(at.house->specs.find("web")->spec.warm_min == 2);
    CHECK(at.settled([&] { return at.condition("web", "Ready") == "True"; }));
    CHECK(at.settled([&] { return at.status("web")["ready"] == 2; }));
    CHECK(at.status("web")["observedGeneration"] == 1);
}

TEST_CASE("a changed object changes its pool, and a deleted object deletes it",
          "[unit][resources]") {
    Place at;
    const auto objects = at.follow();
    at.server.put(kPools, objectNamed("web"));
    CHECK(at.settled([&] { return at.house->specs.find("web") != nullptr; }));
    at.server.put(kPools, objectNamed("web", 2, 3));
    CHECK(at.settled([&] { return at.house->warm.counts("web").ready == 3; }));
    at.server.remove(kPools, "x/web");
    CHECK(at.settled([&] { return at.house->specs.find("web") == nullptr; }));
}

TEST_CASE("a wrong object is stalled, keeps its pool, and is tried again when it changes",
          "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("web", 1, 2));
    const auto objects = at.follow();
    CHECK(at.settled([&] { return at.condition("web", "Ready") == "True"; }));
    at.server.put(kPools, objectNamed("web", 2, 21));
    CHECK(at.settled([&] { return at.condition("web", "Stalled") == "True"; }));
    CHECK(at.condition("web", "Ready") == "False");
    CHECK(at.house->specs.find("web")->spec.warm_min == 2);
    CHECK(at.settled([&] { return at.server.count(kEvents) == 1; }));
    at.server.put(kPools, objectNamed("web", 3, 1));
    CHECK(at.settled([&] { return at.condition("web", "Stalled") == "False"; }));
    CHECK(at.house->specs.find("web")->spec.warm_min == 1);
}

TEST_CASE("a pool goes if its object was deleted while no server ran; one of a file stays",
          "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("gone"));
    at.house->declare("file", smallSpec());
    at.follow();
    REQUIRE(at.house->specs.find("gone"));
    at.server.remove(kPools, "x/gone");
    at.restart();
    REQUIRE_FALSE(at.house->specs.find("gone")->object.empty());
    const auto objects = at.follow();
    CHECK(at.settled([&] { return at.house->specs.find("gone") == nullptr; }));
    CHECK(at.house->specs.find("file"));
}

TEST_CASE("clients cannot change a pool of an object, and the error says what to do",
          "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("web"));
    const auto objects = at.follow();
    const Principal who{.role = Role::Admin, .token_id = {}};
    CHECK_THROWS_WITH(at.house->pools.remove(who, "web"), Catch::Contains("object of the cluster"));
    bool created = false;
    CHECK_THROWS_AS(at.house->pools.put(who, "web", poolDocument("web", smallSpec(5)), {}, created),
                    Error);
    CHECK(at.house->specs.find("web")->spec.warm_min == 1);
}

TEST_CASE("the start waits for the right to list pool objects, and logs it", "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("web"));
    for (int i = 0; i < 3; ++i) {
        at.server.answerNext(
            "list", ::hearth::test::FakeApiServer::status(403, "Forbidden", "no right to list"));
    }
    const auto objects = at.follow();
    CHECK(at.house->specs.find("web"));
    CHECK(at.house->logged("kubernetes.objects_unknown").size() == 1);
}

TEST_CASE("the start does not wait if the cluster lacks the kind", "[unit][resources]") {
    Place at;
    at.server.removeKind(kPools);
    const auto objects = at.follow();
    CHECK(at.house->logged("kubernetes.objects_unknown").size() == 1);
    at.server.addKind(kPools);
    at.server.put(kPools, objectNamed("later"));
}

TEST_CASE("a status that cannot be written is written later, and the log says so once",
          "[unit][resources]") {
    Place at;
    at.server.put(kPools, objectNamed("web"));
    const auto objects = at.follow();
    for (int i = 0; i < 3; ++i) {
        at.server.answerNext("patch",
                             ::hearth::test::FakeApiServer::status(503, "ServiceUnavailable"));
    }
    CHECK(at.settled([&] { return at.condition("web", "Ready") == "True"; }));
    CHECK(at.house->logged("kubernetes.status_not_written").size() == 1);
}

TEST_CASE("pool objects report that the cluster's definitions are older, and when no more",
          "[unit][resources]") {
    constexpr const char* served = "/apis/hearth.dev/v1alpha1";
    const Json older{
        {"resources",
         {{{"name", "sandboxpools"}, {"categories", {"hearth"}}},
          {{"name", "workspaces"},
           {"categories", kubernetes::workspaceDefinition()["spec"]["names"]["categories"]}}}}};
    Place at;
    at.server.put(kPools, objectNamed("web"));
    at.server.putDocument(served, older);
    const auto objects = at.follow();
    CHECK(at.settled([&] { return at.condition("web", "DefinitionOutdated") == "True"; }));
    CHECK(at.settled([&] { return at.condition("web", "Ready") == "True"; }));
    CHECK(at.house->logged("kubernetes.definitions_outdated").size() == 1);
    CHECK(at.settled([&] { return at.server.count(kEvents) == 1; }));
    Json right = older;
    right["resources"][0]["categories"] =
        kubernetes::sandboxPoolDefinition()["spec"]["names"]["categories"];
    at.server.putDocument(served, right);
    CHECK(at.settled([&] { return at.condition("web", "DefinitionOutdated") == "False"; }));
    CHECK(at.settled([&] { return at.server.count(kEvents) == 2; }));
}
