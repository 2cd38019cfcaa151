#include <optional>

#include "controller/services/PoolService.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

TEST_CASE("an apply, a drain and a delete are one line of the log each, with their request's trace",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    const Principal who{"ops",
                        Role::Admin,
                        "",
                        {"0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7", false, ""}};
    const Json document = poolDocument("p", smallSpec(0));
    bool created = false;
    house.pools.put(who, "p", document, {}, created);
    house.pools.put(who, "p", document, {}, created);
    house.pools.drain(who, "p");
    house.pools.remove(who, "p");
    const auto told = [&](const std::string& event, std::size_t at, const std::string& part) {
        const std::vector<std::string> lines = house.logged(event);
        REQUIRE(lines.size() > at);
        INFO(lines[at]);
        CHECK(lines[at].find(" level=info ") != std::string::npos);
        CHECK(lines[at].find(" pool=p tenant=ops " + part) != std::string::npos);
        CHECK(lines[at].find(" seconds=") != std::string::npos);
        CHECK(lines[at].ends_with(" trace=" + who.trace.trace_id));
    };
    told("pool.applied", 0, "result=created ");
    told("pool.applied", 1, "result=unchanged ");
    told("pool.drained", 0, "sandboxes=0 ");
    told("pool.deleting", 0, "");
    for (const Event& event : house.events.list(who, {0, "", "p"})) {
        INFO(event.type);
        CHECK(event.trace_id == who.trace.trace_id);
    }
}

namespace {

/// A server in a cluster whose volume has the claim "shared", and pools that the test gives it.
struct InCluster {
    Ground ground;
    std::optional<House> house;

    InCluster() {
        ground.runtime.beCluster("shared");
        house.emplace(ground);
    }
    /// Returns the field that the refusal names; empty if the pool is accepted.
    std::string refused(const PoolSpec& spec) {
        try {
            bool created = false;
            house->pools.put(house->who, "p", poolDocument("p", spec), {}, created);
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::InvalidSpec);
            REQUIRE(e.fields().size() == 1);
            CHECK(std::string(e.what()).find(e.fields()[0].pointer) != std::string::npos);
            return e.fields()[0].pointer;
        }
        return "";
    }
    /// Declares a pool as if before the rule or on one machine. Returns why it is degraded.
    std::string degraded(const PoolSpec& spec) {
        house->declare("p", spec);
        std::string why;
        house->settleUntil([&] {
            for (const PoolCondition& each : house->pools.get(house->who, "p").status.conditions) {
                if (each.type == ConditionType::Degraded && each.status) why = each.message;
            }
            return !why.empty() || house->warm.counts("p").ready > 0;
        });
        return why;
    }
};

PoolSpec pinned() {
    PoolSpec spec = smallSpec(1);
    spec.image = "registry.example/python@sha256:" + std::string(64, 'a');
    return spec;
}

PoolSpec withVolume(const char* volume) {
    PoolSpec spec = pinned();
    spec.pod_template = {
        {"spec",
         {{"volumes", Json::array({{{"name", "first"}, {"emptyDir", Json::object()}},
                                   Json::parse(volume)})}}}};
    return spec;
}

}  // namespace

TEST_CASE("in a cluster no pool mounts the servers' own volume, or a copy of it",
          "[unit][controller]") {
    const std::string at = "/spec/template/podTemplate/spec/volumes/1/";
    InCluster in;
    const PoolSpec own =
        withVolume(R"({"name": "a", "persistentVolumeClaim": {"claimName": "shared"}})");
    CHECK(in.refused(own) == at + "persistentVolumeClaim/claimName");
    for (const std::string source : {"dataSource", "dataSourceRef"}) {
        const std::string copy =
            R"({"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {")" + source +
            R"(": {"kind": "PersistentVolumeClaim", "name": "shared"}}}}})";
        CHECK(in.refused(withVolume(copy.c_str())) ==
              at + "ephemeral/volumeClaimTemplate/spec/" + source + "/name");
    }
    CHECK(in.refused(withVolume(
              R"({"name": "a", "persistentVolumeClaim": {"claimName": "models"}})")) == "");
    CHECK(
        in.house->pools.get(in.house->who, "p").pool->spec.pod_template["spec"]["volumes"].size() ==
        2);

    SECTION("one that was stored makes no sandbox, and says why") {
        CHECK(in.degraded(own).find(at) != std::string::npos);
        CHECK(in.house->warm.counts("p").ready == 0);
    }
}

TEST_CASE("in a cluster a pool's image can be pulled, and is fixed by a digest or allowed",
          "[unit][controller]") {
    InCluster in;
    PoolSpec spec = pinned();
    const std::string digest = "sha256:" + std::string(64, 'a');
    for (const std::string& image : {std::string("python"), std::string("my-image.2"), digest}) {
        spec.image = image;
        CHECK(in.refused(spec) == "/spec/template/image");
    }
    for (const std::string& image :
         {"python@" + digest, "localhost/python@" + digest, "registry.example/a/b@" + digest}) {
        spec.image = image;
        CHECK(in.refused(spec) == "");
    }
    spec.allow_tags = true;
    for (const char* image : {"python", "python:3.12", "registry.example/python"}) {
        spec.image = image;
        CHECK(in.refused(spec) == "");
    }
    spec.image = digest;
    CHECK(in.refused(spec) == "/spec/template/image");

    SECTION("one that was stored on one machine makes no sandbox, and says why") {
        CHECK(in.degraded(smallSpec(1)).find("/spec/template/image") != std::string::npos);
        CHECK(in.house->warm.counts("p").ready == 0);
    }
}

TEST_CASE("one machine accepts names of stored images and manifests made for a cluster",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    bool created = false;
    PoolSpec spec =
        withVolume(R"({"name": "a", "persistentVolumeClaim": {"claimName": "shared"}})");
    house.pools.put(house.who, "p", poolDocument("p", spec), {}, created);
    house.pools.put(house.who, "p", poolDocument("p", smallSpec(1)), {}, created);
    CHECK(house.pools.get(house.who, "p").pool->spec.image == "python");
}
