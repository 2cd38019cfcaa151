#include "tests/cluster/client/Cluster.h"

using namespace hearth;
using namespace hearth::cluster_test;
using Kind = KubeErrorKind;

TEST_CASE("the real API server: objects are made, changed and deleted as the fake does it",
          "[cluster]") {
    Cluster c;
    const Json made = c.make("a");
    CHECK(c.client.create(c.configs(), c.config("a")).failed(Kind::AlreadyExists));
    CHECK(c.client.get(c.configs(), "a").value()["metadata"]["uid"] == made["metadata"]["uid"]);
    CHECK(c.client.get(c.configs(), "b").failed(Kind::NotFound));
    REQUIRE(c.change("a", "theirs"));
    CHECK(c.client.replace(c.configs(), made).failed(Kind::Conflict));
    const Json wrong = Json::array({{{"op", "test"}, {"path", "/data/text"}, {"value", "two"}}});
    const auto failed = c.client.patch(c.configs(), "a", PatchKind::Json, wrong);
    INFO(failed.error().text());
    CHECK(failed.failed(Kind::Invalid));
    const Json right = Json::array({{{"op", "test"}, {"path", "/data/text"}, {"value", "one"}},
                                    {{"op", "add"}, {"path", "/data/more"}, {"value", "x;y&z"}}});
    CHECK(c.client.patch(c.configs(), "a", PatchKind::Json, right).value()["data"]["more"] ==
          "x;y&z");
    const Json stale = {{"metadata", {{"resourceVersion", made["metadata"]["resourceVersion"]}}},
                        {"data", {{"text", "no"}}}};
    CHECK(c.client.patch(c.configs(), "a", PatchKind::Merge, stale).failed(Kind::Conflict));
    CHECK(c.client.remove(c.configs(), "a", {.uid = "11111111-1111-1111-1111-111111111111"})
              .failed(Kind::Conflict));
    CHECK(c.client.remove(c.configs(), "a",
                          {.uid = made["metadata"]["uid"], .propagation = "Background"}));
    CHECK(c.client.get(c.configs(), "a").failed(Kind::NotFound));
}

TEST_CASE("the real API server: the status of a node is written apart", "[cluster]") {
    Cluster c;
    const KubeResource nodes{.plural = "nodes"};
    const auto made = c.client.create(nodes, {{"metadata", {{"name", c.ns}}}});
    REQUIRE(made);
    Json node = made.value();
    node["metadata"]["labels"]["ignored"] = "yes";
    node["status"]["capacity"]["nvidia.com/gpu"] = "2";
    const auto written = c.client.replaceStatus(nodes, node);
    CHECK(c.client.remove(nodes, c.ns));
    INFO((written ? "" : written.error().text()));
    REQUIRE(written);
    CHECK(written.value()["status"]["capacity"]["nvidia.com/gpu"] == "2");
}

TEST_CASE("the real API server: a Lease has one winner", "[cluster]") {
    Cluster c;
    const KubeResource leases{.group = "coordination.k8s.io", .plural = "leases", .ns = c.ns};
    const auto made = c.client.create(leases, {{"metadata", {{"name", "leader"}}}});
    REQUIRE(made);
    Json mine = made.value();
    Json theirs = mine;
    mine["spec"]["holderIdentity"] = "mine";
    theirs["spec"]["holderIdentity"] = "theirs";
    CHECK(c.client.replace(leases, mine));
    CHECK(c.client.replace(leases, theirs).failed(Kind::Conflict));
    CHECK(c.client.remove(leases, "leader"));
}

TEST_CASE("the real API server: a list in pages is one moment's", "[cluster]") {
    Cluster c;
    for (const char* name : {"a", "b", "c", "d", "e"}) c.make(name);
    const ObjectPage first = c.client.list(c.configs(), {.limit = 2}).value();
    REQUIRE(first.items.size() == 2);
    REQUIRE(c.client.remove(c.configs(), "d"));
    const ObjectPage second =
        c.client.list(c.configs(), {.limit = 2, .continue_from = first.next}).value();
    CHECK(second.items.size() == 2);
    CHECK(second.items.back()["metadata"]["name"] == "d");
    CHECK(second.resource_version == first.resource_version);
    const auto chosen = c.client.list(c.configs(), {.label_selector = "app in (mine,theirs)",
                                                    .field_selector = "metadata.name=e"});
    CHECK(chosen.value().items.size() == 1);
}

TEST_CASE("the real API server: versions that it has not seen are told apart", "[cluster]") {
    Cluster c;
    const auto answer = c.client.list(c.configs(), {.resource_version = "999999999999"});
    REQUIRE_FALSE(answer);
    INFO(answer.error().text());
    CHECK(answer.failed(Kind::VersionTooLarge));
}

TEST_CASE("the real API server: tokens of ServiceAccounts are accepted, and may do little",
          "[cluster]") {
    Cluster c;
    const KubeResource accounts{.plural = "serviceaccounts", .ns = c.ns};
    REQUIRE(c.client.create(accounts, {{"metadata", {{"name", "robot"}}}}));
    const auto answer = c.client.createBelow(accounts, "robot", "token",
                                             {{"apiVersion", "authentication.k8s.io/v1"},
                                              {"kind", "TokenRequest"},
                                              {"spec", {{"expirationSeconds", 600}}}});
    INFO((answer ? "" : answer.error().text()));
    REQUIRE(answer);
    ClusterConfig config = c.access.config();
    config.certificate = config.key = {};
    config.token = {.text = answer.value()["status"]["token"].get<std::string>()};
    ClusterAccess robot(config, c.clock);
    KubernetesClient client(robot);
    const auto forbidden = client.list(c.configs(), {});
    REQUIRE(forbidden.failed(Kind::Forbidden));
    CHECK(forbidden.error().message.find("cannot list resource \"configmaps\"") !=
          std::string::npos);
    CHECK(client.getPath("/version"));
    REQUIRE(c.client.remove(accounts, "robot"));
    config.token = {.text = "nonsense"};
    ClusterAccess nobody(config, c.clock);
    CHECK(KubernetesClient(nobody).list(c.configs(), {}).failed(Kind::Unauthorized));
}

TEST_CASE("the real API server: its certificate is compared with the authority", "[cluster]") {
    Cluster c;
    ClusterConfig config = c.access.config();
    config.authority = {};  // uses this machine's authorities
    ClusterAccess stranger(config, c.clock);
    const auto refused = KubernetesClient(stranger).getPath("/version");
    REQUIRE(refused.failed(Kind::Unreachable));
    CHECK(refused.error().message.find("is not accepted") != std::string::npos);
}
