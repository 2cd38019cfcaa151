#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/kubernetes/PoolObject.h"
#include "tests/support/Support.h"

namespace hearth::kubernetes {
namespace {

using controller::ConditionType;
using controller::PoolView;

constexpr const char* kNow = "2026-11-26T12:00:00Z";
constexpr const char* kEarlier = "2026-11-26T11:00:00Z";

Json objectOf(std::int64_t generation = 2) {
    return {{"apiVersion", "hearth.dev/v1alpha1"},
            {"kind", "SandboxPool"},
            {"metadata",
             {{"name", "web"},
              {"namespace", "hearth"},
              {"uid", "u-1"},
              {"resourceVersion", "77"},
              {"generation", generation},
              {"labels", {{"team", "a"}}},
              {"managedFields", Json::array()}}},
            {"spec", {{"template", {{"image", "python"}}}, {"warm", {{"min", 3}}}}}};
}

PoolView viewOf(bool ready = true) {
    controller::Pool pool = controller::parsePool(manifestOf(objectOf()));
    PoolView view{std::make_shared<const controller::Pool>(std::move(pool)), {}};
    view.status.observed_generation = 1;
    view.status.ready = 2;
    view.status.claimed = 5;
    view.status.conditions = {{ConditionType::Ready, ready, "Filled", "", kNow},
                              {ConditionType::Degraded, !ready, "Healthy", "", kNow}};
    return view;
}

Json find(const Json& status, const std::string& type) {
    for (const Json& each : status["conditions"]) {
        if (each["type"] == type) return each;
    }
    return nullptr;
}

TEST_CASE("an object's manifest equals that of a file, without the cluster's metadata",
          "[unit][resources]") {
    const controller::Pool pool = controller::parsePool(manifestOf(objectOf()));
    CHECK(pool.name == "web");
    CHECK(pool.spec.warm_min == 3);
    CHECK_THROWS_AS(controller::parsePool(manifestOf(Json::object())), Error);
}

TEST_CASE("the status of an object has counts, a selector and conditions of its generation",
          "[unit][resources]") {
    const Json status = poolStatusOf(objectOf(), viewOf(), std::nullopt, kNow);
    CHECK(status["replicas"] == 2);
    CHECK(status["claimed"] == 5);
    CHECK(status["selector"] == "hearth.dev/pool=web");
    CHECK(status["observedGeneration"] == 2);
    CHECK(find(status, "Ready") == Json{{"type", "Ready"},
                                        {"status", "True"},
                                        {"reason", "Filled"},
                                        {"message", "Filled"},
                                        {"lastTransitionTime", kNow},
                                        {"observedGeneration", 2}});
    CHECK(find(status, "Stalled")["status"] == "False");
}

TEST_CASE("a condition's time changes only with its status", "[unit][resources]") {
    Json object = objectOf();
    object["status"] = poolStatusOf(object, viewOf(), std::nullopt, kEarlier);
    for (Json& each : object["status"]["conditions"]) each["lastTransitionTime"] = kEarlier;
    CHECK(poolStatusOf(object, viewOf(), std::nullopt, kNow) == object["status"]);
    const Json changed = poolStatusOf(object, viewOf(false), std::nullopt, kNow);
    CHECK(find(changed, "Ready")["lastTransitionTime"] == kNow);
    CHECK(find(changed, "Stalled")["lastTransitionTime"] == kEarlier);
}

TEST_CASE("an object keeps its observed generation until its pool was reconciled",
          "[unit][resources]") {
    Json object = objectOf(7);
    object["status"] = {{"observedGeneration", 6}};
    PoolView view = viewOf();
    view.status.observed_generation = 0;
    CHECK(poolStatusOf(object, view, std::nullopt, kNow)["observedGeneration"] == 6);
    view.status.observed_generation = 1;
    CHECK(poolStatusOf(object, view, std::nullopt, kNow)["observedGeneration"] == 7);
}

TEST_CASE("an object with a wrong spec is stalled and keeps the counts of its pool",
          "[unit][resources]") {
    const Refusal wrong{"InvalidSpec", "/spec/warm/min must not be above max", true};
    const Json status = poolStatusOf(objectOf(), viewOf(), wrong, kNow);
    CHECK(find(status, "Ready")["status"] == "False");
    CHECK(find(status, "Ready")["reason"] == "InvalidSpec");
    CHECK(find(status, "Stalled")["status"] == "True");
    CHECK(status["ready"] == 2);
    CHECK(status["observedGeneration"] == 2);
    // A refusal that may pass by itself does not stall the object.
    const Json waiting = poolStatusOf(objectOf(), std::nullopt, Refusal{"Ending", "soon"}, kNow);
    CHECK(find(waiting, "Ready")["reason"] == "Ending");
    CHECK(find(waiting, "Stalled")["status"] == "False");
    CHECK(waiting["ready"] == 0);
}

TEST_CASE("a status with other counts alone is no news, one with another message is",
          "[unit][resources]") {
    const Json before = poolStatusOf(objectOf(), viewOf(), std::nullopt, kNow);
    Json now = before;
    now["claimed"] = 6;
    CHECK_FALSE(tellsMore(before, now));
    now["conditions"][0]["message"] = "1 of 2 warm";
    CHECK(tellsMore(before, now));
}

TEST_CASE("a status patch removes absent fields and names the object's uid", "[unit][resources]") {
    Json object = objectOf();
    object["status"] = {{"schedule", Json::object()}, {"ready", 1}};
    const Json patch = statusPatch(object, {{"ready", 2}});
    CHECK(patch ==
          Json{{"metadata", {{"uid", "u-1"}}}, {"status", {{"ready", 2}, {"schedule", nullptr}}}});
}

TEST_CASE("events report conditions that became wrong or right, not unchanged ones",
          "[unit][resources]") {
    const Json object = objectOf();
    const Json good = poolStatusOf(object, viewOf(), std::nullopt, kNow);
    CHECK(eventsOf(object, Json::object(), good, kNow).empty());
    const Json bad = poolStatusOf(object, viewOf(false), Refusal{"InvalidSpec", "why", true}, kNow);
    const std::vector<Json> events = eventsOf(object, good, bad, kNow);
    REQUIRE(events.size() == 2);
    CHECK(events[0]["message"] == "Degraded is true: Healthy");
    CHECK(events[1]["type"] == "Warning");
    CHECK(events[1]["reason"] == "InvalidSpec");
    CHECK(events[1]["involvedObject"]["uid"] == "u-1");
    CHECK(events[1]["metadata"]["namespace"] == "hearth");
    CHECK(eventsOf(object, bad, bad, kNow).empty());
    const std::vector<Json> healed = eventsOf(object, bad, good, kNow);
    REQUIRE(healed.size() == 2);
    CHECK(healed[1]["type"] == "Normal");
}

}  // namespace
}  // namespace hearth::kubernetes
