#include <cstdlib>
#include <utility>

#include "api/serve/runtimes/Runtimes.h"
#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "controller/store/SecretKey.h"
#include "pool/runtime/kubernetes/KubernetesRuntime.h"
#include "pool/runtime/kubernetes/lease/LeaderLease.h"

namespace hearth::program {
namespace {

namespace kube = pool::kubernetes;

/// The length of an instance's name.
constexpr std::size_t kNameDigits = 12;

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// False for wildcard addresses and port 0, which other machines cannot connect to.
bool isReachable(const std::string& address) {
    return !address.empty() && !address.starts_with("0.0.0.0:") && !address.starts_with("[::]:") &&
           !address.ends_with(":0");
}

class LeaseLeadership final : public Leadership {
public:
    LeaseLeadership(const cli::ServeConfig& config, const Clock& clock, metrics::Log& log)
        : access_(clusterOf(config), clock),
          lease_(access_,
                 {.name = *config.lease,
                  .ns = access_.config().ns,
                  .identity = hostName() + "_" + newId(""),
                  .owner = *config.owner,
                  .address = addressOf(config)},
                 clock, log) {}

    static std::string addressOf(const cli::ServeConfig& config) {
        return (*config.advertise).empty() ? *config.listen : *config.advertise;
    }
    bool awaitTurn(const std::stop_token& stop,
                   const std::function<void(const std::string&)>& led) override {
        return lease_.awaitTurn(stop,
                                [&](const kube::LeaseHolder& holder) { led(holder.address); });
    }
    std::uint64_t term() const override { return lease_.epoch(); }
    void keep(std::function<void(const std::string&)> deposed) override {
        lease_.keep(std::move(deposed));
    }
    void release() override { lease_.release(); }
    bool sure() const override { return lease_.fresh(); }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return lease_.subscribe(std::move(changed));
    }

private:
    static std::string hostName() { return variable("HOSTNAME").value_or("hearth"); }

    kube::ClusterAccess access_;
    kube::LeaderLease lease_;
};

class PreparedKubernetes final : public PreparedRuntime {
public:
    PreparedKubernetes(Instance instance, const cli::ServeConfig& config)
        : instance_(std::move(instance)),
          config_(config),
          access_(std::make_unique<kube::ClusterAccess>(clusterOf(config), clock_)) {}

    std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) override {
        if (!agent::secure::initialise()) {
            throw Error(ErrorCode::Unavailable, "the system gives no random bytes");
        }
        // All agents of this server's Pods know the public key.
        const std::string& shared = *config_.keys;
        const std::string seed =
            shared.empty() ? controller::loadSecretKey(instance_.data_dir + "/state/agent-key")
                           : controller::sharedKey(shared, "agent-key");
        std::optional<agent::secure::ServerKey> key = agent::secure::ServerKey::parse(
            toHex(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size()));
        if (!key) throw Error(ErrorCode::Internal, "state/agent-key is not a valid key");
        // Replicas with the same key are one server; their folders have different names.
        const std::string name =
            shared.empty() ? instance_.name
                           : toHex(sha256(key->publicKey().text())).substr(0, kNameDigits);
        pool::KubernetesOptions options{.instance = name,
                                        .agent_image = *config_.agent_image,
                                        .owner = *config_.owner,
                                        .volume = *config_.shared_volume,
                                        .volume_claim = *config_.shared_volume_claim};
        if (leadership_ != nullptr) {
            options.may_write = [this] { return leadership_->sure(); };
        }
        return std::make_unique<pool::KubernetesRuntime>(std::move(options), std::move(access_),
                                                         *std::move(key), parts.clock, parts.log);
    }

    std::unique_ptr<Leadership> leadership(const Clock& clock, metrics::Log& log) override {
        if ((*config_.lease).empty()) return nullptr;
        auto made = std::make_unique<LeaseLeadership>(config_, clock, log);
        leadership_ = made.get();
        return made;
    }

private:
    const Instance instance_;
    const cli::ServeConfig& config_;
    const LeaseLeadership* leadership_ = nullptr;
    const SystemClock clock_;
    std::unique_ptr<kube::ClusterAccess> access_;
};

/// The factory for Pods of a Kubernetes cluster: no launcher, and no root.
class KubernetesFactory final : public RuntimeFactory {
public:
    /// Fits in a Pod, where only Pods can be made, or if a kubeconfig is given.
    RuntimeFit fit(const cli::ServeConfig& config) const override {
        if (!(*config.kubeconfig).empty()) return {true, "a kubeconfig is given"};
        if (kube::inClusterConfig(variable)) return {true, "the server runs in a Pod"};
        return {false, "the server is not in a Pod, and no kubeconfig is given"};
    }
    bool needsRoot() const override { return false; }
    void require(const cli::ServeConfig& config) const override {
        if ((*config.agent_image).empty()) {
            throw Error(ErrorCode::InvalidArgument, "Pods need an image with the agent")
                .hint(
                    "build one from the folder that `hearth agent-folder` writes, and name it with "
                    "--agent-image");
        }
        if (!(*config.lease).empty() && (*config.keys).empty()) {
            throw Error(ErrorCode::InvalidArgument, "replicas need shared keys")
                .hint(
                    "put the files key and agent-key, 32 random bytes each, into a folder, and "
                    "name it with --keys");
        }
        if ((*config.shared_volume).empty() && !(*config.shared_volume_claim).empty()) {
            throw Error(ErrorCode::InvalidArgument,
                        "--shared-volume-claim names a volume that this server does not have")
                .hint("mount it here, too, and name the place with --shared-volume");
        }
        if (!(*config.lease).empty() && !isReachable(LeaseLeadership::addressOf(config))) {
            throw Error(ErrorCode::InvalidArgument, "other replicas cannot reach this one at " +
                                                        LeaseLeadership::addressOf(config))
                .hint("name its own address with --advertise HOST:PORT");
        }
    }
    std::unique_ptr<PreparedRuntime> prepare(const cli::ServeConfig& config,
                                             const Instance& instance,
                                             const controller::Account& account) const override {
        auto prepared = std::make_unique<PreparedKubernetes>(instance, config);
        makeServerDirectories(instance, account);
        return prepared;
    }
};

}  // namespace

kube::ClusterConfig clusterOf(const cli::ServeConfig& config) {
    if (!(*config.kubeconfig).empty()) return kube::kubeconfig(*config.kubeconfig);
    if (std::optional<kube::ClusterConfig> here = kube::inClusterConfig(variable)) {
        return *std::move(here);
    }
    throw Error(ErrorCode::InvalidArgument, "there is no cluster to make Pods in")
        .hint("name one with --kubeconfig, or run the server in a Pod of it");
}

std::unique_ptr<RuntimeFactory> makeKubernetesFactory() {
    return std::make_unique<KubernetesFactory>();
}

}  // namespace hearth::program
