#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/cli/doctor/KubernetesChecks.h"
#include "api/kubernetes/Definitions.h"
#include "tests/support/Support.h"
#include "tests/support/kubernetes/FakeApiServer.h"

using namespace hearth;
using namespace hearth::cli;
using hearth::test::FakeApiServer;

namespace {

constexpr const char* kServed = "/apis/hearth.dev/v1alpha1";
constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/// A cluster that refuses every right, and the configuration of a server that would use it.
struct Cluster {
    Cluster() {
        std::ofstream(dir.file("kubeconfig"))
            << "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
               "clusters: [{name: c, cluster: {server: '"
            << server.url()
            << "'}}]\nusers: [{name: u, user: {token: t}}]\n"
               "contexts: [{name: c, context: {cluster: c, user: u, namespace: x}}]\n";
        config.kubeconfig.value = dir.file("kubeconfig");
        server.putDocument("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                           {{"status", {{"allowed", false}}}});
        for (const Json& each :
             {kubernetes::sandboxPoolDefinition(), kubernetes::workspaceDefinition()}) {
            define(each);
        }
    }
    /// Makes the API server answer as if it had this definition.
    void define(const Json& definition) {
        const Json& names = definition["spec"]["names"];
        std::erase_if(resources, [&](const Json& r) { return r["name"] == names["plural"]; });
        resources.push_back({{"name", names["plural"]}, {"categories", names["categories"]}});
        server.putDocument(kServed, {{"resources", resources}});
        server.putDocument(kDefinitions + definition["metadata"]["name"].get<std::string>(),
                           definition);
    }
    Finding finding(const std::string& name) const {
        const Findings all = checkKubernetes(config);
        const auto found = std::ranges::find(all, name, &Finding::name);
        REQUIRE(found != all.end());
        return *found;
    }

    test::TempDir dir;
    FakeApiServer server;
    std::vector<Json> resources;
    ServeConfig config;
};

}  // namespace

TEST_CASE("the version of a cluster is judged: too old, unknown, good", "[unit][cli]") {
    CHECK(judgeClusterVersion({{"major", "1"}, {"minor", "20+"}}).level == Level::Ok);
    CHECK(judgeClusterVersion({{"major", "1"}, {"minor", "34"}}).level == Level::Ok);
    const Finding old = judgeClusterVersion({{"major", "1"}, {"minor", "19"}});
    CHECK(old.level == Level::Fail);
    CHECK(old.message.find("1.19 is older than 1.20") != std::string::npos);
    CHECK_FALSE(old.fix.empty());
    for (const Json& odd : {Json::object(), Json{{"major", "2"}, {"minor", "0"}},
                            Json{{"major", "1"}, {"minor", ""}}, Json("v1.20")}) {
        CHECK(judgeClusterVersion(odd).level == Level::Warn);
        CHECK_FALSE(judgeClusterVersion(odd).fix.empty());
    }
}

TEST_CASE("doctor reports missing runtime classes with the pools that name them", "[unit][cli]") {
    CHECK(judgeRuntimeClasses({}, {}).level == Level::Ok);
    CHECK(judgeRuntimeClasses({{"gvisor", "web"}}, {"gvisor", "kata"}).level == Level::Ok);
    const Finding missing = judgeRuntimeClasses({{"gvisor", "web"}}, {"kata"});
    CHECK(missing.level == Level::Fail);
    CHECK(missing.message.find("gvisor (pool web); it has kata") != std::string::npos);
    CHECK_FALSE(missing.fix.empty());
}

TEST_CASE("doctor compares the runtime classes of files and of objects with the cluster's",
          "[unit][cli]") {
    Cluster at;
    at.server.put("/apis/node.k8s.io/v1/runtimeclasses", {{"metadata", {{"name", "kata"}}}});
    at.server.put("/apis/hearth.dev/v1alpha1/sandboxpools",
                  {{"metadata", {{"name", "box"}, {"namespace", "x"}}},
                   {"spec", {{"template", {{"runtimeClass", "kata"}}}}}});
    at.config.custom_resources.value = true;
    CHECK(at.finding("runtime classes").level == Level::Ok);
    std::ofstream(at.dir.file("pools.yaml"))
        << "apiVersion: hearth.dev/v1alpha1\nkind: SandboxPool\nmetadata: {name: web}\n"
           "spec: {template: {image: python, runtimeClass: gvisor}}\n";
    at.config.pools.value = {at.dir.file("pools.yaml")};
    const Finding missing = at.finding("runtime classes");
    CHECK(missing.level == Level::Fail);
    CHECK(missing.message.find("gvisor (pool web); it has kata") != std::string::npos);
}

TEST_CASE("doctor asks for the right to see the owner of Pods, where there is one", "[unit][cli]") {
    Cluster at;
    CHECK(at.finding("permissions").message.find("deployments") == std::string::npos);
    at.config.owner.value = "deployments.apps/hearth";
    const Finding rights = at.finding("permissions");
    CHECK(rights.message.find("may not get deployments.apps") != std::string::npos);
    CHECK(rights.fix.find("--verb=get --resource=deployments.apps") != std::string::npos);
    bool named = false;
    for (const auto& request : at.server.seen("create")) {
        const Json asked =
            parseJson(request.body)["spec"].value("resourceAttributes", Json::object());
        named = named || (asked.value("resource", "") == "deployments" &&
                          asked.value("name", "") == "hearth" && asked["group"] == "apps" &&
                          asked["namespace"] == "x");
    }
    CHECK(named);
}

TEST_CASE("doctor names the fields that the cluster's definitions lack", "[unit][cli]") {
    Cluster at;
    at.config.custom_resources.value = true;
    CHECK(at.finding("definitions").level == Level::Ok);
    Json changed = kubernetes::sandboxPoolDefinition();  // changed by hand, with Hearth's mark
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        .erase("onEmpty");
    at.define(changed);
    const Finding lacking = at.finding("definitions");
    CHECK(lacking.level == Level::Fail);
    CHECK(lacking.message.find("sandboxpools.hearth.dev was changed by hand and lacks "
                               "spec.onEmpty") != std::string::npos);
    CHECK(lacking.fix.find("hearth crds | kubectl apply -f -") != std::string::npos);
    at.server.putDocument(kServed, nullptr);
    CHECK(at.finding("definitions").message == "the cluster does not know SandboxPools");
}
