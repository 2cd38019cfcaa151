#include <cstdlib>
#include <utility>

#include "api/serve/runtimes/Runtimes.h"
#include "base/Digest.h"
#include "base/Error.h"
#include "controller/store/SecretKey.h"
#include "pool/runtime/kubernetes/KubernetesRuntime.h"

namespace hearth::program {
namespace {

namespace kube = pool::kubernetes;

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

kube::ClusterConfig clusterOf(const cli::ServeConfig& config) {
    if (!(*config.kubeconfig).empty()) return kube::kubeconfig(*config.kubeconfig);
    if (std::optional<kube::ClusterConfig> here = kube::inClusterConfig(variable)) {
        return *std::move(here);
    }
    throw Error(ErrorCode::InvalidArgument, "there is no cluster to make Pods in")
        .hint("name one with --kubeconfig, or run the server in a Pod of it");
}

class PreparedKubernetes final : public PreparedRuntime {
public:
    PreparedKubernetes(Instance instance, const cli::ServeConfig& config)
        : instance_(std::move(instance)),
          agent_image_(*config.agent_image),
          access_(std::make_unique<kube::ClusterAccess>(clusterOf(config), clock_)) {}

    std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) override {
        if (!agent::secure::initialise()) {
            throw Error(ErrorCode::Unavailable, "the system gives no random bytes");
        }
        // All agents of this server's Pods know the public half.
        const std::string seed = controller::loadSecretKey(instance_.data_dir + "/state/agent-key");
        std::optional<agent::secure::ServerKey> key = agent::secure::ServerKey::parse(
            toHex(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size()));
        if (!key) throw Error(ErrorCode::Internal, "state/agent-key is no key");
        return std::make_unique<pool::KubernetesRuntime>(
            pool::KubernetesOptions{instance_.name, agent_image_}, std::move(access_),
            *std::move(key), parts.clock, parts.log);
    }

private:
    const Instance instance_;
    const std::string agent_image_;
    const SystemClock clock_;
    std::unique_ptr<kube::ClusterAccess> access_;
};

/// Pods of a Kubernetes cluster: no launcher, and no root.
class KubernetesFactory final : public RuntimeFactory {
public:
    /// A server in a Pod can make nothing else; one elsewhere is told.
    RuntimeFit fit(const cli::ServeConfig& config) const override {
        if (!(*config.kubeconfig).empty()) return {true, "a kubeconfig is given"};
        if (kube::inClusterConfig(variable)) return {true, "we run in a Pod"};
        return {false, "we are in no Pod, and no kubeconfig is given"};
    }
    bool needsRoot() const override { return false; }
    void require(const cli::ServeConfig& config) const override {
        if ((*config.agent_image).empty()) {
            throw Error(ErrorCode::InvalidArgument, "Pods need an image with the agent")
                .hint(
                    "make one from the folder of hearth agent-folder, and name it with "
                    "--agent-image");
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

std::unique_ptr<RuntimeFactory> makeKubernetesFactory() {
    return std::make_unique<KubernetesFactory>();
}

}  // namespace hearth::program
