#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Ids.h"
#include "pool/runtime/kubernetes/client/ClusterAccess.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"

namespace hearth::cluster_test {

using namespace pool::kubernetes;

inline std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Damages the API server: HEARTH_CLUSTER_FAULT is a command that takes a word of fault.py.
inline void fault(const std::string& word) {
    REQUIRE(std::system((variable("HEARTH_CLUSTER_FAULT") + " " + word).c_str()) == 0);
}

/// The cluster of HEARTH_CLUSTER_KUBECONFIG, and a namespace of this test case in it.
struct Cluster {
    Cluster() {
        ::signal(SIGPIPE, SIG_IGN);  // like the server; OpenSSL writes without MSG_NOSIGNAL
        ns = "hearth-client-" + newId("ws_").substr(3, 8);
        const auto made = client.create({.plural = "namespaces"}, {{"metadata", {{"name", ns}}}});
        INFO((made ? "" : made.error().text()));
        REQUIRE(made);
    }
    ~Cluster() {
        // Without a controller-manager the namespace stays Terminating, but its contents go.
        for (const Json& item : listed()) {
            (void)client.remove(configs(), item["metadata"]["name"].get<std::string>());
        }
        (void)client.remove({.plural = "namespaces"}, ns);
    }
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    KubeResource configs() const { return {.plural = "configmaps", .ns = ns}; }
    std::vector<Json> listed() {
        auto page = client.list(configs(), {});
        return page ? std::move(page).value().items : std::vector<Json>();
    }
    Json config(const std::string& name, const std::string& label = "mine") const {
        return {{"metadata", {{"name", name}, {"labels", {{"app", label}}}}},
                {"data", {{"text", "one"}}}};
    }
    /// Creates a ConfigMap. Throws if that fails.
    Json make(const std::string& name, const std::string& label = "mine") {
        auto made = client.create(configs(), config(name, label));
        if (!made) throw std::runtime_error(made.error().text());
        return std::move(made).value();
    }
    KubeResult<Json> change(const std::string& name, const std::string& label) {
        return client.patch(configs(), name, PatchKind::Merge,
                            {{"metadata", {{"labels", {{"app", label}}}}}});
    }

    SystemClock clock;
    ClusterAccess access{kubeconfig(variable("HEARTH_CLUSTER_KUBECONFIG")), clock};
    KubernetesClient client{access};
    std::string ns;
};

/// A reflector of the ConfigMaps of a Cluster, on a thread of its own, and its reports.
class Follower {
public:
    explicit Follower(Cluster& cluster, ReflectorOptions options = {})
        : reflector_(cluster.client, cluster.configs(), cache_, cluster.clock,
                     with(std::move(options))) {
        subscription_ = cache_.subscribe([this](const ObjectChange& change) {
            const Json& object = change.now ? *change.now : *change.before;
            const char* const sign = !change.before ? "+" : change.now ? "~" : "-";
            const std::lock_guard lock(mutex_);
            told_.push_back(sign + metadataText(object, "name"));
            changed_.notify_all();
        });
        thread_ = std::jthread([this](const std::stop_token& stop) { reflector_.run(stop); });
    }

    /// Waits for as many changes, and checks that they are these. Fails the case after a minute.
    void await(const std::vector<std::string>& wanted) {
        std::unique_lock lock(mutex_);
        const bool came = changed_.wait_for(lock, std::chrono::seconds(60),
                                            [&] { return told_.size() >= wanted.size(); });
        CHECK(told_ == wanted);
        REQUIRE(came);
        told_.clear();
    }
    void awaitSync() {
        until([this] { return cache_.hasSynced(); });
    }
    void until(const std::function<bool()>& done) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!done()) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    std::size_t restarts(RestartReason reason) {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count(restarts_.begin(), restarts_.end(), reason));
    }
    std::vector<std::string> told() {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    const ObjectCache& cache() const { return cache_; }
    Reflector& reflector() { return reflector_; }
    /// Stops the thread. Returns the time that its end took.
    std::chrono::nanoseconds stop() {
        const auto began = std::chrono::steady_clock::now();
        thread_.request_stop();
        thread_.join();
        return std::chrono::steady_clock::now() - began;
    }

private:
    ReflectorOptions with(ReflectorOptions options) {
        options.on_restart = [this](RestartReason reason) {
            const std::lock_guard lock(mutex_);
            restarts_.push_back(reason);
        };
        return options;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> told_;
    std::vector<RestartReason> restarts_;
    ObjectCache cache_;
    Reflector reflector_;
    std::shared_ptr<void> subscription_;
    std::jthread thread_;
};

using Lines = std::vector<std::string>;

}  // namespace hearth::cluster_test
