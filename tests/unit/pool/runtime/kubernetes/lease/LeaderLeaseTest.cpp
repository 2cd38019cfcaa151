#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pool/runtime/kubernetes/lease/LeaderLease.h"
#include "tests/support/Support.h"
#include "tests/support/kubernetes/FakeApiServer.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/leases";
using Standing = LeaderLease::Standing;

struct LeaseServer {
    FakeApiServer server;
    ManualClock clock;
    SystemClock real;
    metrics::Log log{-1, metrics::LogLevel::Error};

    LeaseServer() { server.addKind(kLeases); }
    Json lease() const { return *server.get(kLeases, "x/hearth"); }
};

/// One of several servers.
struct Replica {
    Replica(LeaseServer& cluster, const std::string& name)
        : access({.url = cluster.server.url()}, cluster.real),
          lease(access, {.name = "hearth", .ns = "x", .identity = name, .address = name + ":8080"},
                cluster.clock, cluster.log) {}
    ClusterAccess access;
    LeaderLease lease;
};

}  // namespace

TEST_CASE("the first replica leads, and the others see who it is", "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    Replica two(cluster, "two");
    CHECK(one.lease.step() == Standing::Leader);
    CHECK(two.lease.step() == Standing::Follower);
    CHECK(two.lease.holder() == LeaseHolder{"one", "one:8080", one.lease.epoch()});
    CHECK(one.lease.fresh());
    CHECK_FALSE(two.lease.fresh());
    CHECK(cluster.lease()["spec"]["leaseDurationSeconds"] == 15);
}

TEST_CASE("a renewed Lease is never taken, and an expired one is taken with a higher number",
          "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    Replica two(cluster, "two");
    REQUIRE(one.lease.step() == Standing::Leader);
    for (int i = 0; i < 20; ++i) {
        CHECK(two.lease.step() == Standing::Follower);
        cluster.clock.advance(5s);
        CHECK(one.lease.step() == Standing::Leader);
    }
    CHECK(two.lease.step() == Standing::Follower);
    cluster.clock.advance(14s);
    CHECK(two.lease.step() == Standing::Follower);
    cluster.clock.advance(1s);
    CHECK(two.lease.step() == Standing::Leader);
    CHECK(two.lease.epoch() > one.lease.epoch());
    CHECK(cluster.lease()["spec"]["leaseTransitions"] == 1);
    CHECK_FALSE(one.lease.fresh());
    CHECK(one.lease.step() == Standing::Deposed);
    CHECK(one.lease.step() == Standing::Deposed);
    CHECK(two.lease.step() == Standing::Leader);
}

TEST_CASE("the age of a Lease counts from when it was first seen, whatever its own time",
          "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    REQUIRE(one.lease.step() == Standing::Leader);
    cluster.clock.advance(1h);
    Replica late(cluster, "late");
    CHECK(late.lease.step() == Standing::Follower);
    cluster.clock.advance(15s);
    CHECK(late.lease.step() == Standing::Leader);
}

TEST_CASE("a follower looks again when the Lease expires, not up to a period later",
          "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    Replica two(cluster, "two");
    CHECK(two.lease.pause() == 2s);
    REQUIRE(one.lease.step() == Standing::Leader);
    CHECK(one.lease.pause() == 2s);
    REQUIRE(two.lease.step() == Standing::Follower);
    CHECK(two.lease.pause() == 2s);
    cluster.clock.advance(14'300ms);
    REQUIRE(two.lease.step() == Standing::Follower);
    CHECK(two.lease.pause() == 700ms);
    cluster.clock.advance(two.lease.pause());
    CHECK(two.lease.step() == Standing::Leader);
    CHECK(two.lease.pause() == 2s);
}

TEST_CASE("a leader without the API server goes on, and is not sure to be alone",
          "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    REQUIRE(one.lease.step() == Standing::Leader);
    const std::uint64_t epoch = one.lease.epoch();
    for (int i = 0; i < 3; ++i) {
        cluster.server.answerNext("update", FakeApiServer::status(503, "ServiceUnavailable"));
        cluster.clock.advance(5s);
        CHECK(one.lease.step() == Standing::Leader);
    }
    CHECK_FALSE(one.lease.fresh());
    CHECK(one.lease.step() == Standing::Leader);
    CHECK(one.lease.fresh());
    CHECK(one.lease.epoch() == epoch);
}

TEST_CASE("subscribers are told when a leader becomes unsure, and when it is sure again",
          "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    std::vector<bool> told;
    const auto subscription = one.lease.subscribe([&] { told.push_back(one.lease.fresh()); });
    REQUIRE(one.lease.step() == Standing::Leader);
    REQUIRE(one.lease.step() == Standing::Leader);
    CHECK(told == std::vector{true});
    const auto fail = [&] {
        cluster.server.answerNext("update", FakeApiServer::status(503, "ServiceUnavailable"));
        REQUIRE(one.lease.step() == Standing::Leader);
    };
    cluster.clock.advance(9s);
    fail();
    CHECK(told.size() == 1);
    CHECK(one.lease.pause() == 1s);
    cluster.clock.advance(one.lease.pause());
    fail();
    fail();
    CHECK(told == std::vector{true, false});
    CHECK(one.lease.pause() == 2s);
    REQUIRE(one.lease.step() == Standing::Leader);
    CHECK(told == std::vector{true, false, true});
}

TEST_CASE("a leader makes a deleted Lease again, with its number", "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    REQUIRE(one.lease.step() == Standing::Leader);
    const std::uint64_t epoch = one.lease.epoch();
    cluster.server.remove(kLeases, "x/hearth");
    CHECK(one.lease.step() == Standing::Leader);
    CHECK(one.lease.epoch() == epoch);
    CHECK(cluster.lease()["metadata"]["annotations"]["hearth.dev/epoch"] == std::to_string(epoch));

    // Another replica is faster.
    cluster.server.remove(kLeases, "x/hearth");
    cluster.clock.advance(1ms);
    Replica two(cluster, "two");
    CHECK(two.lease.step() == Standing::Leader);
    CHECK(two.lease.epoch() > epoch);
    CHECK(one.lease.step() == Standing::Deposed);
}

TEST_CASE("one of two replicas that take a free Lease at once wins", "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    REQUIRE(one.lease.step() == Standing::Leader);
    Replica two(cluster, "two");
    REQUIRE(two.lease.step() == Standing::Follower);
    cluster.clock.advance(15s);
    // The Lease as it was before another replica took it.
    const Json before = cluster.lease();
    Replica three(cluster, "three");
    REQUIRE(three.lease.step() == Standing::Follower);
    cluster.clock.advance(15s);
    REQUIRE(three.lease.step() == Standing::Leader);
    cluster.server.answerNext("get", {.status = 200, .body = before.dump()});
    CHECK(two.lease.step() == Standing::Follower);
    CHECK(two.lease.step() == Standing::Follower);
    CHECK(two.lease.holder().identity == "three");
}

TEST_CASE("a leader that ends lets another lead at once", "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    REQUIRE(one.lease.step() == Standing::Leader);
    one.lease.release();
    CHECK_FALSE(one.lease.fresh());
    Replica two(cluster, "two");
    CHECK(two.lease.step() == Standing::Leader);
    CHECK(two.lease.epoch() > one.lease.epoch());
}

TEST_CASE("a stop ends the wait for the lead", "[unit][kubernetes]") {
    LeaseServer cluster;
    Replica one(cluster, "one");
    Replica two(cluster, "two");
    std::stop_source stop;
    std::string seen;
    const auto see = [&](const LeaseHolder& holder) {
        seen += holder.address;
        stop.request_stop();
    };
    CHECK(one.lease.awaitTurn(stop.get_token(), see));
    CHECK(seen.empty());
    CHECK_FALSE(two.lease.awaitTurn(stop.get_token(), see));
    CHECK(seen == "one:8080");
}

TEST_CASE("a time is written as Kubernetes' MicroTime", "[unit][kubernetes]") {
    CHECK(microTime(fromUnixMillis(1'700'000'000'005)) == "2023-11-14T22:13:20.005000Z");
}
