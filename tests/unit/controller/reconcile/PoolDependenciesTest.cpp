#include <fstream>

#include "controller/reconcile/PoolDependencies.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

// A dependency that the server lacks becomes a condition of the pool, not a refusal.

namespace {

PoolSpec withSecret(const std::string& name) {
    PoolSpec spec = smallSpec(1);
    spec.network = egress::NetworkMode::Egress;
    egress::Credential credential;
    credential.destination = *egress::Destination::parse("api.example.com", 443);
    credential.secret = name;
    spec.network_credentials = {credential};
    return spec;
}

struct Outside {
    explicit Outside(egress::EgressOptions options)
        : gateway(std::move(options), log, metrics, clock, tracer) {}
    PoolCondition credentials(const PoolSpec& spec) {
        outside.tell(spec, status);
        const PoolCondition* found = conditionIn(status, ConditionType::Credentials);
        return found == nullptr ? PoolCondition{} : *found;
    }

    ManualClock clock;
    metrics::Log log{-1};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    egress::EgressGateway gateway;
    PoolDependencies outside{gateway, log, clock};
    PoolStatus status;
};

}  // namespace

TEST_CASE("a condition's time is its last change of status, whatever its message",
          "[unit][controller]") {
    ManualClock clock;
    PoolStatus status;
    const auto set = [&](bool value, const char* reason) {
        clock.advance(10s);
        setCondition(status, clock, ConditionType::Ready, value, reason, std::string(reason) + "!");
        return status.conditions.front();
    };
    const std::string first = set(false, "Filling").since;
    CHECK(first == formatRfc3339(clock.wall()));
    CHECK(set(false, "Filling").since == first);
    const PoolCondition again = set(false, "Drained");
    CHECK(again.since == first);
    CHECK(again.reason == "Drained");
    CHECK(again.message == "Drained!");
    const std::string filled = set(true, "Filled").since;
    CHECK(filled == formatRfc3339(clock.wall()));
    CHECK(set(true, "Filled").since == filled);
    CHECK(status.conditions.size() == 1);
}

TEST_CASE("a Mirror pool on a server without a mirror says so, and is no less ready",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(1);
    spec.network = egress::NetworkMode::Mirror;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 1));
    const PoolStatus status = house.statuses.of("p");
    const PoolCondition* mirrored = conditionIn(status, ConditionType::Mirrored);
    REQUIRE(mirrored != nullptr);
    CHECK_FALSE(mirrored->status);
    CHECK(mirrored->message.find("--mirror-pypi") != std::string::npos);
    CHECK(mirrored->message.find("--mirror-npm") != std::string::npos);
    CHECK(conditionIn(status, ConditionType::Ready)->status);
    house.declare("p", smallSpec(1));
    house.loop.settle();
    CHECK(conditionIn(house.statuses.of("p"), ConditionType::Mirrored) == nullptr);
}

TEST_CASE("a newly declared pool reports at once what it lacks", "[unit][controller]") {
    Ground ground;
    House house{ground};
    const Pool pool = poolNamed("p", [] {
        PoolSpec spec = smallSpec(1);
        spec.network = egress::NetworkMode::Mirror;
        return spec;
    }());
    CHECK(conditionIn(house.statuses.first(pool), ConditionType::Mirrored) != nullptr);
}

TEST_CASE("a missing credential is reported by its name until its file exists",
          "[unit][controller]") {
    CHECK(Outside({}).credentials(smallSpec(1)).reason.empty());
    CHECK(Outside({}).credentials(withSecret("tok")).message ==
          "secret tok: egress.secrets is not set");
    TempDir dir;
    egress::EgressOptions options;
    options.secrets_directory = dir.path();
    Outside some(options);
    CHECK(some.credentials(withSecret("tok")).message ==
          "secret tok: no such file in egress.secrets");
    CHECK_FALSE(some.credentials(withSecret("tok")).status);
    const std::string since = some.credentials(withSecret("tok")).since;
    std::ofstream(dir.file("tok")) << "short";
    CHECK(some.credentials(withSecret("tok")).message ==
          "secret tok: its file is not 8 to 4,096 printable ASCII characters");
    std::ofstream(dir.file("tok")) << "long-enough-value\n";
    some.clock.advance(5s);
    const PoolCondition whole = some.credentials(withSecret("tok"));
    CHECK(whole.status);
    CHECK(whole.message.empty());
    CHECK(whole.since != since);
}
