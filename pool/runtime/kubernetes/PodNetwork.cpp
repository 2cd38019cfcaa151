#include "pool/runtime/kubernetes/PodNetwork.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "pool/runtime/kubernetes/PodManifest.h"

namespace hearth::pool::kubernetes {

void shutPodsOff(KubernetesClient& client, const PodGroup& pods, const CallLimits& limits) {
    const auto& [ns, instance, owner, servers] = pods;
    const KubeResource policies{
        .group = "networking.k8s.io", .version = "v1", .plural = "networkpolicies", .ns = ns};
    const std::string name = "hearth-" + instance;
    Json admitted{{"ports", Json::array({{{"protocol", "TCP"}, {"port", kAgentPort}}})}};
    if (!servers.is_null()) admitted["from"] = Json::array({{{"podSelector", servers}}});
    const Json spec{{"podSelector", {{"matchLabels", {{kInstanceLabel, instance}}}}},
                    {"policyTypes", Json::array({"Ingress", "Egress"})},
                    {"ingress", Json::array({admitted})},
                    {"egress", Json::array()}};
    Json policy{
        {"apiVersion", "networking.k8s.io/v1"},
        {"kind", "NetworkPolicy"},
        {"metadata",
         {{"name", name},
          {"labels", {{"app.kubernetes.io/managed-by", "hearth"}, {kInstanceLabel, instance}}}}},
        {"spec", spec}};
    if (!owner.is_null()) policy["metadata"]["ownerReferences"] = Json::array({owner});
    KubeResult<Json> made = client.create(policies, policy, limits);
    // The policy exists from the previous start.
    if (made.failed(KubeErrorKind::AlreadyExists)) {
        made = client.patch(policies, name, PatchKind::Merge, {{"spec", spec}}, {}, limits);
    }
    if (made) return;
    throw Error(ErrorCode::Unavailable,
                "the Pods of namespace " + ns +
                    " cannot be shut off from the network: " + made.error().text())
        .hint("let the server create and patch networkpolicies there");
}

}  // namespace hearth::pool::kubernetes
