#include "api/cli/doctor/KubernetesChecks.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "api/serve/runtimes/Runtimes.h"
#include "base/Clock.h"
#include "base/Ids.h"
#include "pool/runtime/kubernetes/PodManifest.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::cli {
namespace {

namespace kube = pool::kubernetes;

constexpr kube::CallLimits kClusterPatience{.timeout = std::chrono::seconds(10)};

/// One kind of object, and what the server does with it.
struct Need {
    const char* group;
    const char* plural;
    std::vector<const char*> verbs;
    bool in_namespace = true;
    std::string name = {};   ///< the only object that it does that with, but for `create`
    std::string below = {};  ///< a subresource
};

/// docs/kubernetes.md has the same list.
std::vector<Need> needs(const std::string& lease, bool custom_resources) {
    std::vector<Need> all{{"", "pods", {"create", "get", "list", "watch", "patch", "delete"}},
                          {"networking.k8s.io", "networkpolicies", {"create", "patch"}}};
    if (!lease.empty()) {
        all.push_back({"coordination.k8s.io", "leases", {"get", "create", "update"}, true, lease});
    }
    if (custom_resources) {
        for (const char* plural : {"sandboxpools", "workspaces"}) {
            all.push_back({"hearth.dev", plural, {"list", "watch"}});
            all.push_back({"hearth.dev", plural, {"patch"}, true, "", "status"});
        }
        for (const char* plural : {"events", "secrets"}) all.push_back({"", plural, {"create"}});
    }
    return all;
}

const Need kNodes{"", "nodes", {"list", "watch"}, false};

/// The verbs that the server lacks, with commas; nullopt where the cluster does not say.
std::optional<std::string> lacking(kube::KubernetesClient& client, const std::string& ns,
                                   const Need& need) {
    std::string missing;
    for (const char* verb : need.verbs) {
        Json asked{{"verb", verb}, {"group", need.group}, {"resource", need.plural}};
        if (need.in_namespace) asked["namespace"] = ns;
        if (!need.below.empty()) asked["subresource"] = need.below;
        if (!need.name.empty() && std::string_view(verb) != "create") asked["name"] = need.name;
        const kube::KubeResult<Json> said =
            client.create({.group = "authorization.k8s.io", .plural = "selfsubjectaccessreviews"},
                          {{"apiVersion", "authorization.k8s.io/v1"},
                           {"kind", "SelfSubjectAccessReview"},
                           {"spec", {{"resourceAttributes", std::move(asked)}}}},
                          kClusterPatience);
        if (!said) return std::nullopt;
        const Json status = said.value().value("status", Json::object());
        if (!status.value("allowed", false))
            missing += (missing.empty() ? "" : ",") + std::string(verb);
    }
    return missing;
}

std::string resourceText(const Need& need) {
    std::string text = need.plural;
    if (*need.group != '\0') text.append(".").append(need.group);
    return need.below.empty() ? text : text + "/" + need.below;
}

Finding checkRights(kube::KubernetesClient& client, const std::string& ns,
                    const ServeConfig& config) {
    Finding finding = allRight("permissions", "all that the server needs in " + ns);
    for (const Need& need : needs(*config.lease, *config.custom_resources)) {
        const std::optional<std::string> missing = lacking(client, ns, need);
        if (!missing) {
            return {Level::Warn, "permissions", "the cluster does not say what the server may do",
                    "allow create of selfsubjectaccessreviews, as system:basic-user does"};
        }
        if (missing->empty()) continue;
        finding.message = finding.level == Level::Ok ? "" : finding.message + "; ";
        finding.fix += finding.fix.empty() ? "" : " && ";
        finding.level = Level::Fail;
        finding.message += "the server may not " + *missing + " " + resourceText(need);
        finding.fix += "kubectl -n " + ns + " create role hearth-" + need.plural +
                       (need.below.empty() ? "" : "-" + need.below) + " --verb=" + *missing +
                       " --resource=" + resourceText(need);
    }
    if (finding.level == Level::Fail) {
        finding.fix += ", and bind them to the server's ServiceAccount";
    }
    return finding;
}

Finding checkDefinitions(kube::KubernetesClient& client) {
    if (client.getPath("/apis/hearth.dev/v1alpha1", kClusterPatience)) {
        return allRight("definitions", "the cluster knows SandboxPools and Workspaces");
    }
    return {Level::Fail, "definitions", "the cluster does not know SandboxPools",
            "hearth crds | kubectl apply -f -"};
}

Finding checkNodes(kube::KubernetesClient& client, const std::string& ns) {
    const std::optional<std::string> missing = lacking(client, ns, kNodes);
    if (missing && missing->empty()) return allRight("nodes", "the server may watch them");
    return {Level::Warn, "nodes",
            "the server may not watch them: warm Pods stay on nodes that are cordoned or not ready",
            "kubectl create clusterrole hearth-nodes --verb=list,watch --resource=nodes, and bind "
            "it to the server's ServiceAccount"};
}

/// The cluster's own checks: admission, quotas, policies.
Finding checkPod(kube::KubernetesClient& client, const std::string& ns, const std::string& image) {
    pool::SandboxSpec spec;
    spec.image = "example.invalid/image";
    const Json pod = kube::podManifest(spec, {.id = newId("sb_"),
                                              .instance = "doctor",
                                              .agent_image = image.empty() ? "none" : image,
                                              .server_key = std::string(64, '0')});
    const kube::KubeResult<Json> said =
        client.tryCreate({.plural = "pods", .ns = ns}, pod, kClusterPatience);
    if (said) return allRight("pods", "a sandbox's Pod would be taken in " + ns);
    return {Level::Fail, "pods", "a sandbox's Pod would be refused: " + said.error().text(),
            "see what refuses it: a quota of the namespace, Pod Security, or an admission webhook"};
}

Finding checkRuntimeClasses(kube::KubernetesClient& client) {
    const kube::KubeResult<kube::ObjectPage> all =
        client.list({.group = "node.k8s.io", .plural = "runtimeclasses"}, {}, kClusterPatience);
    if (!all) return allRight("runtime classes", "not for the server to see; pools may name them");
    std::string names;
    for (const Json& one : all.value().items) {
        names += (names.empty() ? "" : ", ") + kube::metadataText(one, "name");
    }
    return allRight("runtime classes",
                    names.empty() ? "none: pools use the nodes' own runtime" : names);
}

Findings judgeCluster(kube::KubernetesClient& client, const std::string& ns,
                      const ServeConfig& config) {
    const kube::KubeResult<Json> version = client.getPath("/version", kClusterPatience);
    const std::string& url = client.access().config().url;
    if (!version) {
        return {{Level::Fail, "cluster", url + " does not answer: " + version.error().text(),
                 "check --kubeconfig, and that this machine reaches the API server"}};
    }
    Findings findings{allRight("cluster", "Kubernetes " + version.value().value("gitVersion", "?") +
                                              " at " + url + ", namespace " + ns)};
    findings.push_back(checkRights(client, ns, config));
    if (*config.custom_resources) findings.push_back(checkDefinitions(client));
    findings.push_back(checkNodes(client, ns));
    findings.push_back(checkRuntimeClasses(client));
    findings.push_back(
        {Level::Ok, "network policies",
         "the server makes one; whether the cluster's network enforces it cannot be asked", ""});
    return findings;
}

}  // namespace

Findings checkKubernetes(const ServeConfig& config) {
    try {
        const SystemClock clock;
        kube::ClusterAccess access(program::clusterOf(config), clock);
        kube::KubernetesClient client(access);
        const std::string ns = access.config().ns;
        Findings findings = judgeCluster(client, ns, config);
        if (findings.front().level != Level::Ok) return findings;
        findings.push_back(checkPod(client, ns, *config.agent_image));
        if ((*config.agent_image).empty()) {
            findings.push_back({Level::Fail, "agent image", "none is named",
                                "make one from the folder of hearth agent-folder, and name it with "
                                "--agent-image"});
        }
        return findings;
    } catch (const Error& e) {
        return {{Level::Fail, "cluster", e.what(), e.hint()}};
    }
}

}  // namespace hearth::cli
