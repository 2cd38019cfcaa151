#include <catch2/catch.hpp>

#include "pool/runtime/kubernetes/client/KubeResource.h"

using namespace hearth::pool::kubernetes;

TEST_CASE("paths name group, version, namespace, object and subresource", "[unit][kubernetes]") {
    const KubeResource pods{.plural = "pods", .ns = "default"};
    CHECK(pods.path() == "/api/v1/namespaces/default/pods");
    CHECK(pods.path("a") == "/api/v1/namespaces/default/pods/a");
    CHECK(pods.path("a", "status") == "/api/v1/namespaces/default/pods/a/status");
    CHECK(KubeResource{.plural = "nodes"}.path("vm") == "/api/v1/nodes/vm");
    const KubeResource leases{
        .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .ns = "x"};
    CHECK(leases.path() == "/apis/coordination.k8s.io/v1/namespaces/x/leases");
    CHECK(leases.text() == "leases.coordination.k8s.io in x");
}

TEST_CASE("a name cannot leave its place in a path", "[unit][kubernetes]") {
    CHECK(KubeResource{.plural = "nodes"}.path("../secrets?x") == "/api/v1/nodes/..%2Fsecrets%3Fx");
}

TEST_CASE("a query encodes everything that a server may read as syntax", "[unit][kubernetes]") {
    KubeQuery query;
    CHECK(query.text().empty());
    query.add("labelSelector", "app in (a,b)").add("empty", "").add("continue", "x;y&z=+/");
    CHECK(query.text() == "?labelSelector=app%20in%20%28a%2Cb%29&continue=x%3By%26z%3D%2B%2F");
}

TEST_CASE("an owner is named by its kind and name", "[unit][kubernetes]") {
    const auto deployment = parseOwner("deployments.apps/hearth", "x");
    REQUIRE(deployment);
    CHECK(deployment->resource.path(deployment->name) ==
          "/apis/apps/v1/namespaces/x/deployments/hearth");
    CHECK(parseOwner("configmaps/a", "x")->resource.path() == "/api/v1/namespaces/x/configmaps");
    for (const char* wrong : {"", "hearth", "/hearth", "pods/", "a/b/c"}) {
        CHECK_FALSE(parseOwner(wrong, "x"));
    }
}
