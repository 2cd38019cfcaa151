#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "pool/runtime/kubernetes/client/ClusterConfig.h"
#include "tests/support/House.h"
#include "tests/support/kubernetes/FakeApiServer.h"

namespace hearth::kubernetes::test {

inline constexpr const char* kPools = "/apis/hearth.dev/v1alpha1/sandboxpools";
inline constexpr const char* kWorkspaces = "/apis/hearth.dev/v1alpha1/workspaces";
inline constexpr const char* kEvents = "/api/v1/events";
inline constexpr const char* kSecrets = "/api/v1/secrets";

/// A control plane, and a cluster with objects in namespace x. Its clock does not move by itself.
struct Cluster {
    Cluster() {
        for (const char* kind : {kPools, kWorkspaces, kEvents, kSecrets}) server.addKind(kind);
    }

    pool::kubernetes::ClusterConfig config() const { return {.url = server.url(), .ns = "x"}; }
    /// Works until `done` is true, while the manual clock advances.
    bool settled(const std::function<bool()>& done) {
        return house->settleUntil([&] {
            ground.manual.advance(std::chrono::seconds(1));
            return done();
        });
    }
    Json status(const char* kind, const std::string& name) const {
        return server.get(kind, "x/" + name)->value("status", Json::object());
    }
    /// Returns "True", "False", or "" without such a condition.
    std::string condition(const char* kind, const std::string& name,
                          const std::string& type) const {
        for (const Json& each : status(kind, name).value("conditions", Json::array())) {
            if (each["type"] == type) return each["status"];
        }
        return "";
    }
    /// Kills the server, and starts another one on its data and sandboxes.
    void restart() {
        house.reset();
        house = std::make_unique<controller::test::House>(ground);
    }

    hearth::test::FakeApiServer server;
    controller::test::Ground ground;
    std::unique_ptr<controller::test::House> house =
        std::make_unique<controller::test::House>(ground);
};

}  // namespace hearth::kubernetes::test
