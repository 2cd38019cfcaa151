#include "tests/cluster/client/Cluster.h"

using namespace hearth;
using namespace hearth::cluster_test;
using State = ReflectorCondition::State;

TEST_CASE("a reflector of the real API server sees objects come, change and go", "[cluster]") {
    Cluster c;
    c.make("before");
    c.make("other", "theirs");
    Follower follower(c, {.label_selector = "app=mine"});
    follower.await({"+before"});
    c.make("a");
    REQUIRE(c.change("a", "mine2"));  // the object leaves the selector
    REQUIRE(c.change("a", "mine"));
    const Json twice = c.make("twice");
    REQUIRE(c.client.remove(c.configs(), "twice"));
    CHECK(c.make("twice")["metadata"]["uid"] != twice["metadata"]["uid"]);
    follower.await({"+a", "-a", "+a", "+twice", "-twice", "+twice"});
    CHECK_FALSE(follower.cache().get(c.ns + "/a")->at("metadata").contains("managedFields"));
    CHECK(follower.reflector().ready());
    CHECK(follower.stop() < std::chrono::seconds(2));
}

TEST_CASE("a reflector goes on where the real API server ends its watch", "[cluster]") {
    Cluster c;
    Follower follower(
        c, {.shortest_watch = std::chrono::seconds(1), .longest_watch = std::chrono::seconds(1)});
    follower.awaitSync();
    follower.until([&] { return follower.restarts(RestartReason::Ended) >= 2; });
    c.make("a");
    follower.await({"+a"});
    CHECK(follower.restarts(RestartReason::Expired) == 0);
    CHECK(follower.restarts(RestartReason::Silent) == 0);
}

TEST_CASE("a reflector waits for a kind that the real API server lacks, and for a permission",
          "[cluster]") {
    Cluster c;
    ObjectCache cache;
    Reflector missing(c.client, {.group = "none.hearth.dev", .plural = "things"}, cache, c.clock);
    (void)missing.step();
    (void)missing.step();
    CHECK(missing.condition().state == State::Missing);
}

TEST_CASE("a reflector misses nothing when the real API server is killed and comes back",
          "[cluster][faults]") {
    Cluster c;
    c.make("stays");
    c.make("goes");
    c.make("anew");
    Follower follower(c);
    follower.await({"+anew", "+goes", "+stays"});
    // Another object changes, so that the known versions are older than the next server's.
    REQUIRE(c.client.create({.plural = "nodes"}, {{"metadata", {{"name", c.ns}}}}));
    REQUIRE(c.client.remove({.plural = "nodes"}, c.ns));
    fault("kill");
    follower.until([&] { return follower.reflector().condition().state == State::Behind; });
    CHECK(follower.cache().size() == 3);
    fault("start");
    REQUIRE(c.client.remove(c.configs(), "goes"));
    REQUIRE(c.client.remove(c.configs(), "anew"));
    c.make("anew");
    c.make("late");
    REQUIRE(c.change("stays", "changed"));
    follower.until([&] {
        const KubeObject stays = follower.cache().get(c.ns + "/stays");
        return stays && stays->at("metadata").at("labels").at("app") == "changed" &&
               follower.cache().get(c.ns + "/late") && !follower.cache().get(c.ns + "/goes");
    });
    CHECK(follower.cache().size() == 3);
    CHECK(follower.restarts(RestartReason::Expired) >= 1);  // all old versions are too old by then
    CHECK(follower.reflector().condition().state == State::Following);
    int deleted = 0;
    for (const std::string& line : follower.told()) deleted += line.starts_with("-") ? 1 : 0;
    CHECK(deleted == 2);
}

TEST_CASE("a reflector bears a real API server that stands still for a while",
          "[cluster][faults]") {
    Cluster c;
    Follower follower(c, {.shortest_watch = std::chrono::seconds(1),
                          .longest_watch = std::chrono::seconds(1),
                          .patience = std::chrono::milliseconds(1'000)});
    follower.awaitSync();
    fault("freeze");
    follower.until([&] { return follower.restarts(RestartReason::Silent) >= 1; });
    const auto call = c.client.get(c.configs(), "a", {.timeout = std::chrono::milliseconds(500)});
    fault("thaw");
    CHECK(call.failed(KubeErrorKind::Timeout));
    c.make("a");
    follower.await({"+a"});
}

TEST_CASE("pages that etcd has forgotten are told, and a reflector lists anew",
          "[cluster][faults]") {
    Cluster c;
    for (const char* name : {"a", "b", "c"}) c.make(name);
    const ObjectPage first = c.client.list(c.configs(), {.limit = 1}).value();
    REQUIRE(c.change("c", "changed"));
    fault("compact");
    const auto next = c.client.list(c.configs(), {.limit = 1, .continue_from = first.next});
    REQUIRE_FALSE(next);
    INFO(next.error().text());
    CHECK(next.failed(KubeErrorKind::Gone));
    Follower follower(c, {.page = 1});
    follower.await({"+a", "+b", "+c"});
}
