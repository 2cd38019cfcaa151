#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "pool/runtime/kubernetes/client/ClusterAccess.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"
#include "tests/support/kubernetes/FakeApiServer.h"

namespace hearth::kubernetes_test {

using namespace pool::kubernetes;
using test::FakeApiServer;
using test::kPods;
using End = FakeApiServer::End;
using State = ReflectorCondition::State;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

inline Json podNamed(const std::string& name, const std::string& label = {}) {
    Json out = {{"metadata", {{"namespace", "x"}, {"name", name}}}};
    if (!label.empty()) out["metadata"]["labels"]["app"] = label;
    return out;
}

/// The middle of the range, so a backoff is half of its longest: 0.4 s, 0.8 s, 1.6 s, ...
inline double half() {
    return 0.5;
}

/// A reflector of the Pods in namespace x of a fake server. Time stands still, and a watch is given
/// up after ten seconds of silence, which no test reaches.
struct ReflectorHarness {
    explicit ReflectorHarness(ReflectorOptions wanted = {}) {
        server.addKind(kPods);
        if (!wanted.random) wanted.random = half;
        wanted.shortest_watch = wanted.longest_watch = seconds(5);
        if (wanted.patience == ReflectorOptions{}.patience) wanted.patience = seconds(5);
        wanted.on_restart = [this](RestartReason reason) { restarts.push_back(reason); };
        wanted.on_condition = [this](const ReflectorCondition& condition) {
            states.push_back(condition.state);
        };
        access = std::make_unique<ClusterAccess>(
            ClusterConfig{.url = server.url(), .token = {.text = "t"}}, clock);
        client = std::make_unique<KubernetesClient>(*access);
        reflector = std::make_unique<Reflector>(*client, KubeResource{.plural = "pods", .ns = "x"},
                                                cache, clock, std::move(wanted));
        subscription = cache.subscribe([this](const ObjectChange& change) {
            const Json& object = change.now ? *change.now : *change.before;
            const char* const sign = !change.before ? "+" : change.now ? "~" : "-";
            told.push_back(sign + metadataText(object, "name"));
        });
    }

    /// Steps once; checks the delay that it asks for.
    void step(nanoseconds delay = nanoseconds(0)) { CHECK(reflector->step() == delay); }
    /// Makes the reflector learn that the server streams no lists, and list.
    void list() {
        step();
        step();
        REQUIRE(cache.hasSynced());
        told.clear();
    }
    /// Runs one watch that brings the changes and ends cleanly.
    void follow() {
        server.planWatch({.lines = {}, .end = End::Clean});
        step();
    }
    std::vector<std::string> takeTold() { return std::exchange(told, {}); }
    State state() const { return reflector->condition().state; }
    test::SeenRequest last(const std::string& verb) const { return server.seen(verb).back(); }
    std::size_t lists() const { return server.seen("list").size(); }

    ManualClock clock;
    FakeApiServer server;
    ObjectCache cache;
    std::unique_ptr<ClusterAccess> access;
    std::unique_ptr<KubernetesClient> client;
    std::unique_ptr<Reflector> reflector;
    std::shared_ptr<void> subscription;
    std::vector<std::string> told;
    std::vector<RestartReason> restarts;
    std::vector<State> states;
};

using Lines = std::vector<std::string>;

}  // namespace hearth::kubernetes_test
