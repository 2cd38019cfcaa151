#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Ids.h"
#include "pool/runtime/kubernetes/KubernetesRuntime.h"
#include "pool/runtime/kubernetes/PodManifest.h"
#include "tests/support/Support.h"
#include "tests/support/kubernetes/FakeApiServer.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kPolicies = "/apis/networking.k8s.io/v1/networkpolicies";

/// A cluster without nodes: Pods stay as they were created until the test plays the kubelet.
struct Cluster {
    FakeApiServer server;
    SystemClock clock;
    metrics::Log log{-1, metrics::LogLevel::Error};
    std::atomic<bool> leads = true;
    std::unique_ptr<KubernetesRuntime> runtime;

    Cluster() {
        REQUIRE(agent::secure::initialise());
        server.addKind(kPods);
        server.addKind(kPolicies);
        server.addKind(kNodes);
    }
    KubernetesRuntime& start(const std::string& owner = {}) {
        runtime.reset();
        runtime = std::make_unique<KubernetesRuntime>(
            KubernetesOptions{.instance = "aaaaaaaaaaaa",
                              .agent_image = "agents:1",
                              .owner = owner,
                              .may_write = [this] { return leads.load(); }},
            std::make_unique<kubernetes::ClusterAccess>(
                kubernetes::ClusterConfig{.url = server.url()}, clock),
            *agent::secure::ServerKey::parse(std::string(64, '1')), clock, log);
        return *runtime;
    }
    static std::string keyOf(const SandboxId& id) { return "default/" + kubernetes::podName(id); }
    void node(const std::string& name, bool ready, bool cordoned = false) {
        const Json condition{{"type", "Ready"}, {"status", ready ? "True" : "Unknown"}};
        server.put(kNodes, {{"metadata", {{"name", name}}},
                            {"spec", {{"unschedulable", cordoned}}},
                            {"status", {{"conditions", Json::array({condition})}}}});
    }
    /// Sets the Pod's status as the kubelet does once the sandbox runs.
    void run(const SandboxId& id) {
        Json pod = *server.get(kPods, keyOf(id));
        pod["spec"]["nodeName"] = "one";
        pod["status"] = {
            {"phase", "Running"},
            {"podIP", "127.0.0.1"},
            {"initContainerStatuses",
             Json::array({{{"name", kubernetes::kInitContainer},
                           {"state", {{"terminated", {{"message", std::string(64, 'a')}}}}}}})},
            {"containerStatuses", Json::array({{{"name", kubernetes::kSandboxContainer},
                                                {"state", {{"running", Json::object()}}}}})}};
        server.put(kPods, pod);
    }
};

SandboxSpec small() {
    SandboxSpec spec;
    spec.image = "images/python@sha256:1";
    spec.labels = {{"pool", "p"}};
    return spec;
}

}  // namespace

TEST_CASE("a sandbox is a Pod: accepted at once, listening when the kubelet says so",
          "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    std::atomic<int> news = 0;
    runtime.onNews([&](const SandboxId&) { ++news; });
    const SandboxId id = newId("sb_");
    CHECK(runtime.create(id, small()) == SandboxRuntime::Started::Accepted);
    const std::optional<SandboxInfo> fresh = runtime.find(id);  // even before the watch shows it
    REQUIRE(fresh);
    CHECK(fresh->alive);
    CHECK_FALSE(fresh->listening);
    CHECK_THROWS_AS(runtime.dialer(id)(agent::secure::Purpose::Control), std::system_error);
    cluster.run(id);
    REQUIRE(eventually([&] { return runtime.find(id)->listening; }));
    CHECK(news > 0);
    CHECK(runtime.list().size() == 1);
    CHECK(runtime.list()[0].labels.at("pool") == "p");
    CHECK(codeOf([&] { runtime.create(id, small()); }) == ErrorCode::Conflict);
}

TEST_CASE("a destroyed sandbox is gone at once, and destroy may be repeated",
          "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    const SandboxId id = newId("sb_");
    runtime.create(id, small());
    runtime.destroy(id);
    CHECK_FALSE(runtime.find(id));
    CHECK(runtime.list().empty());
    CHECK(cluster.server.count(kPods) == 0);
    runtime.destroy(id);
    CHECK(cluster.server.seen("delete").size() == 1);
}

TEST_CASE("a Pod that was destroyed before the watch showed it is never shown",
          "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    std::atomic<int> news = 0;
    std::atomic<int> shown = 0;
    std::atomic<bool> destroyed = false;
    runtime.onNews([&](const SandboxId& id) {
        if (destroyed && (runtime.find(id) || !runtime.list().empty())) ++shown;
        ++news;
    });
    for (int i = 1; i <= 20; ++i) {
        destroyed = false;
        const SandboxId id = newId("sb_");
        runtime.create(id, small());
        runtime.destroy(id);
        destroyed = true;
        REQUIRE(eventually([&] { return news == 2 * i; }));  // one for its start, one for its end
    }
    CHECK(shown == 0);
}

TEST_CASE("a new server finds the Pods of the one before, and sweeps those nobody needs",
          "[unit][kubernetes]") {
    Cluster cluster;
    const SandboxId kept = newId("sb_");
    const SandboxId lost = newId("sb_");
    cluster.start().create(kept, small());
    cluster.runtime->create(lost, small());
    KubernetesRuntime& runtime = cluster.start();
    CHECK(runtime.list().size() == 2);
    const SandboxId fresh = newId("sb_");
    runtime.create(fresh, small());
    CHECK(runtime.sweep({kept}).empty());
    CHECK(runtime.find(kept));
    CHECK(runtime.find(fresh));
    CHECK_FALSE(runtime.find(lost));
}

TEST_CASE("the network policy of Pods exists before the first Pod", "[unit][kubernetes]") {
    Cluster cluster;
    cluster.start();
    Json policy = *cluster.server.get(kPolicies, "default/hearth-aaaaaaaaaaaa");
    CHECK(policy.at("spec").at("egress").empty());
    policy["spec"]["egress"] = Json::array({Json::object()});  // somebody opens it
    cluster.server.put(kPolicies, policy);
    cluster.start();
    policy = *cluster.server.get(kPolicies, "default/hearth-aaaaaaaaaaaa");
    CHECK(policy.at("spec").at("egress").empty());

    cluster.runtime.reset();
    cluster.server.answerNext("create", FakeApiServer::status(403, "Forbidden", "no verb create"));
    CHECK(codeOf([&] { cluster.start(); }) == ErrorCode::Unavailable);
}

TEST_CASE("a refused Pod is reported with the reason, and nothing of it is kept",
          "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    const SandboxId id = newId("sb_");
    cluster.server.answerNext(
        "create", FakeApiServer::status(403, "Forbidden", "exceeded quota: pods, used: 5"));
    try {
        runtime.create(id, small());
        FAIL("it was refused");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unavailable);
        CHECK_THAT(e.what(), Catch::Contains("exceeded quota"));
    }
    CHECK_FALSE(runtime.find(id));
}

TEST_CASE("a server without the API server does not start", "[unit][kubernetes]") {
    Cluster cluster;
    cluster.server.shut();
    CHECK(codeOf([&] { cluster.start(); }) == ErrorCode::Unavailable);
}

TEST_CASE("a sandbox is unfit while its node is, unless no node is fit", "[unit][kubernetes]") {
    Cluster cluster;
    cluster.node("one", true);
    cluster.node("two", true);
    KubernetesRuntime& runtime = cluster.start();
    std::atomic<int> news = 0;
    runtime.onNews([&](const SandboxId&) { ++news; });
    const SandboxId id = newId("sb_");
    runtime.create(id, small());
    cluster.run(id);
    REQUIRE(eventually([&] { return runtime.find(id)->listening; }));
    CHECK(runtime.find(id)->unfit.empty());

    const int before = news;
    cluster.node("one", true, true);
    REQUIRE(eventually([&] { return runtime.find(id)->unfit == "its node one is cordoned"; }));
    CHECK(eventually([&] { return news > before; }));
    CHECK(runtime.list().front().unfit == "its node one is cordoned");
    cluster.node("one", false);
    REQUIRE(eventually([&] { return runtime.find(id)->unfit == "its node one is not ready"; }));
    cluster.node("two", false);
    CHECK(eventually([&] { return runtime.find(id)->unfit.empty(); }));
    cluster.node("two", true);
    CHECK(eventually([&] { return !runtime.find(id)->unfit.empty(); }));
    cluster.server.remove(kNodes, "one");
    CHECK(eventually([&] { return runtime.find(id)->unfit == "its node one has gone"; }));
}

TEST_CASE("a server that may not see nodes takes all as fit", "[unit][kubernetes]") {
    Cluster cluster;
    cluster.server.removeKind(kNodes);
    KubernetesRuntime& runtime = cluster.start();
    const SandboxId id = newId("sb_");
    runtime.create(id, small());
    cluster.run(id);
    REQUIRE(eventually([&] { return runtime.find(id)->listening; }));
    CHECK(runtime.find(id)->unfit.empty());
}

TEST_CASE("a claim is noted at its Pod, and another server sees it", "[unit][kubernetes]") {
    Cluster cluster;
    const SandboxId id = newId("sb_");
    cluster.start().create(id, small());
    CHECK_FALSE(cluster.runtime->find(id)->claimed);
    cluster.runtime->noteClaim(id);
    CHECK(cluster.start().find(id)->claimed);
    cluster.runtime->destroy(id);
    CHECK_NOTHROW(cluster.runtime->noteClaim(id));  // the sandbox has ended meanwhile
    cluster.server.answerNext("patch", FakeApiServer::status(503, "ServiceUnavailable"));
    CHECK(codeOf([&] { cluster.runtime->noteClaim(id); }) == ErrorCode::Unavailable);
}

TEST_CASE("a replica that may not lead any more makes and destroys nothing", "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    const SandboxId id = newId("sb_");
    runtime.create(id, small());
    cluster.leads = false;
    CHECK(codeOf([&] { runtime.create(newId("sb_"), small()); }) == ErrorCode::Unavailable);
    CHECK(codeOf([&] { runtime.destroy(id); }) == ErrorCode::Unavailable);
    CHECK(runtime.sweep({}).empty());  // made in this life, so nothing to sweep
    CHECK(cluster.server.count(kPods) == 1);
    CHECK(runtime.find(id));
    cluster.leads = true;
    runtime.destroy(id);
    CHECK(cluster.server.count(kPods) == 0);
}

TEST_CASE("Pods and their policy go with their owner, which must be there", "[unit][kubernetes]") {
    constexpr const char* kDeployments = "/apis/apps/v1/deployments";
    Cluster cluster;
    CHECK(codeOf([&] { cluster.start("hearth"); }) == ErrorCode::InvalidArgument);
    CHECK(codeOf([&] { cluster.start("deployments.apps/hearth"); }) == ErrorCode::Unavailable);
    const Json made = cluster.server.put(
        kDeployments, {{"apiVersion", "apps/v1"},
                       {"kind", "Deployment"},
                       {"metadata", {{"name", "hearth"}, {"namespace", "default"}}}});
    const SandboxId id = newId("sb_");
    cluster.start("deployments.apps/hearth").create(id, small());
    for (const Json& object : {*cluster.server.get(kPods, Cluster::keyOf(id)),
                               *cluster.server.get(kPolicies, "default/hearth-aaaaaaaaaaaa")}) {
        const Json& owner = object.at("metadata").at("ownerReferences").at(0);
        CHECK(owner.at("kind") == "Deployment");
        CHECK(owner.at("apiVersion") == "apps/v1");
        CHECK(owner.at("uid") == made.at("metadata").at("uid"));
    }
}

TEST_CASE("only the Pods of the servers' Deployment reach the agents, if it is known",
          "[unit][kubernetes]") {
    const auto admitted = [](Cluster& cluster) {
        const Json policy = *cluster.server.get(kPolicies, "default/hearth-aaaaaaaaaaaa");
        return policy.at("spec").at("ingress").at(0);
    };
    Cluster cluster;
    cluster.start();
    CHECK_FALSE(admitted(cluster).contains("from"));
    const Json selector{{"matchLabels", {{"app", "hearth"}}}};
    cluster.server.put("/apis/apps/v1/deployments",
                       {{"apiVersion", "apps/v1"},
                        {"kind", "Deployment"},
                        {"metadata", {{"name", "hearth"}, {"namespace", "default"}}},
                        {"spec", {{"selector", selector}}}});
    cluster.start("deployments.apps/hearth");
    CHECK(admitted(cluster).at("from") == Json::array({{{"podSelector", selector}}}));
    CHECK(admitted(cluster).at("ports").at(0).at("port") == 7017);
}

TEST_CASE("a server that stops still ends Pods, until its time is over", "[unit][kubernetes]") {
    Cluster cluster;
    KubernetesRuntime& runtime = cluster.start();
    const SandboxId one = newId("sb_");
    const SandboxId two = newId("sb_");
    runtime.create(one, small());
    runtime.create(two, small());
    runtime.finishWithin(10s);
    runtime.destroy(one);
    CHECK(cluster.server.count(kPods) == 1);
    runtime.finishWithin(0s);
    CHECK(codeOf([&] { runtime.destroy(two); }) == ErrorCode::Unavailable);
}
