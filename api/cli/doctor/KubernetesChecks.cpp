#include "api/cli/doctor/KubernetesChecks.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "api/kubernetes/DefinitionCheck.h"
#include "api/serve/OfflineState.h"
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
/// The oldest minor version of Kubernetes 1 on which Hearth is tested.
constexpr unsigned kOldestMinor = 20;

/// One kind of object, and the verbs that the server uses on it.
struct Need {
    std::string group;
    std::string plural;
    std::vector<const char*> verbs;
    bool in_namespace = true;
    std::string name = {};   ///< the only object that it uses them on, except for `create`
    std::string below = {};  ///< a subresource
};

/// docs/kubernetes.md has the same list.
std::vector<Need> needs(const ServeConfig& config, const std::string& ns) {
    const std::string& lease = *config.lease;
    const auto owner = kube::parseOwner(*config.owner, ns);
    std::vector<Need> all{{"", "pods", {"create", "get", "list", "watch", "patch", "delete"}},
                          {"networking.k8s.io", "networkpolicies", {"create", "patch"}}};
    if (!lease.empty()) {
        all.push_back({"coordination.k8s.io", "leases", {"get", "create", "update"}, true, lease});
    }
    if (owner) {
        all.push_back({owner->resource.group, owner->resource.plural, {"get"}, true, owner->name});
    }
    if (*config.custom_resources) {
        for (const char* plural : {"sandboxpools", "workspaces"}) {
            all.push_back({"hearth.dev", plural, {"list", "watch"}});
            all.push_back({"hearth.dev", plural, {"patch"}, true, "", "status"});
        }
        for (const char* plural : {"events", "secrets"}) all.push_back({"", plural, {"create"}});
    }
    return all;
}

const Need kNodes{"", "nodes", {"list", "watch"}, false};

/// The verbs that the server lacks, with commas; nullopt if the cluster does not report them.
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
    if (!need.group.empty()) text.append(".").append(need.group);
    return need.below.empty() ? text : text + "/" + need.below;
}

Finding checkRights(kube::KubernetesClient& client, const std::string& ns,
                    const ServeConfig& config) {
    Finding finding = allRight("permissions", "all that the server needs in " + ns);
    for (const Need& need : needs(config, ns)) {
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
    const auto read = [&client](const std::string& path) -> std::optional<Json> {
        kube::KubeResult<Json> found = client.getPath(path, kClusterPatience);
        if (!found) return std::nullopt;
        return std::move(found).value();
    };
    const kubernetes::DefinitionVerdict verdict = kubernetes::checkDefinitions(read, true);
    if (!verdict.known) {
        return {Level::Fail, "definitions", "the cluster does not know SandboxPools",
                "hearth crds | kubectl apply -f -"};
    }
    if (!verdict.trouble.empty()) {
        return {Level::Fail, "definitions", verdict.trouble, kubernetes::kDefinitionFix};
    }
    return allRight("definitions", "the cluster has SandboxPools and Workspaces of this version");
}

Finding checkNodes(kube::KubernetesClient& client, const std::string& ns) {
    const std::optional<std::string> missing = lacking(client, ns, kNodes);
    if (missing && missing->empty()) return allRight("nodes", "the server may watch them");
    return {Level::Warn, "nodes",
            "the server may not watch them: warm Pods stay on nodes that are cordoned or not ready",
            "kubectl create clusterrole hearth-nodes --verb=list,watch --resource=nodes, and bind "
            "it to the server's ServiceAccount"};
}

/// Runs the cluster's own checks: admission, quotas, policies.
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

/// Pools from files and from objects, by the runtime class that they name.
std::map<std::string, std::string> wantedClasses(kube::KubernetesClient& client,
                                                 const std::string& ns, const ServeConfig& config) {
    std::map<std::string, std::string> wanted;
    const auto want = [&](const std::string& name, const std::string& pool) {
        if (!name.empty()) wanted.emplace(name, pool);
    };
    for (const auto* files : {&config.pools, &config.pools_once}) {
        for (const controller::Pool& pool : program::declaredInFiles(*files)) {
            want(pool.spec.runtime_class, pool.name);
        }
    }
    if (!*config.custom_resources) return wanted;
    const kube::KubeResult<kube::ObjectPage> objects = client.list(
        {.group = "hearth.dev", .version = "v1alpha1", .plural = "sandboxpools", .ns = ns}, {},
        kClusterPatience);
    if (!objects) return wanted;  // the checks of permissions and definitions give the reason
    for (const Json& object : objects.value().items) {
        want(kube::valueText(object, "/spec/template/runtimeClass"),
             kube::metadataText(object, "name"));
    }
    return wanted;
}

Finding checkRuntimeClasses(kube::KubernetesClient& client,
                            const std::map<std::string, std::string>& wanted) {
    const kube::KubeResult<kube::ObjectPage> all =
        client.list({.group = "node.k8s.io", .plural = "runtimeclasses"}, {}, kClusterPatience);
    if (!all && wanted.empty()) {
        return allRight("runtime classes", "they cannot be listed, but no pool names one");
    }
    if (!all) {
        return {
            Level::Warn, "runtime classes",
            "cannot find out whether the cluster has those that pools name: " + all.error().text(),
            "run this as a user who may list runtimeclasses.node.k8s.io; the server need not"};
    }
    std::set<std::string> there;
    for (const Json& one : all.value().items) there.insert(kube::metadataText(one, "name"));
    return judgeRuntimeClasses(wanted, there);
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
    findings.push_back(judgeClusterVersion(version.value()));
    findings.push_back(checkRights(client, ns, config));
    if (*config.custom_resources) findings.push_back(checkDefinitions(client));
    findings.push_back(checkNodes(client, ns));
    try {
        findings.push_back(checkRuntimeClasses(client, wantedClasses(client, ns, config)));
    } catch (const std::exception& e) {  // other faults must be reported, too
        findings.push_back({Level::Fail, "runtime classes",
                            std::string("the pools cannot be read: ") + e.what(),
                            "fix the file of --pools or --pools-once"});
    }
    findings.push_back({Level::Ok, "network policies",
                        "the server makes one; the API server cannot say whether the cluster's "
                        "network enforces it",
                        ""});
    return findings;
}

/// The number at the beginning of a text such as "20" or "20+".
std::optional<unsigned> numberIn(const std::string& text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

Finding judgeClusterVersion(const Json& version) {
    const std::optional<unsigned> major = numberIn(kube::valueText(version, "/major"));
    const std::optional<unsigned> minor = numberIn(kube::valueText(version, "/minor"));
    const std::string oldest = "1." + std::to_string(kOldestMinor);
    if (!major || !minor || *major != 1) {
        return {Level::Warn, "version",
                "the API server does not name a version that Hearth knows: " + dumpJson(version),
                "Hearth is tested on Kubernetes " + oldest + " and newer of version 1"};
    }
    const std::string theirs = std::to_string(*major) + "." + std::to_string(*minor);
    if (*minor < kOldestMinor) {
        return {Level::Fail, "version",
                "Kubernetes " + theirs + " is older than " + oldest +
                    ", the oldest that Hearth is tested on",
                "upgrade the cluster to " + oldest + " or newer"};
    }
    return allRight("version", theirs + "; " + oldest + " or newer is needed");
}

Finding judgeRuntimeClasses(const std::map<std::string, std::string>& wanted,
                            const std::set<std::string>& there) {
    std::string names;
    for (const std::string& name : there) names += (names.empty() ? "" : ", ") + name;
    std::string missing;
    for (const auto& [name, pool] : wanted) {
        if (there.contains(name)) continue;
        missing.append(missing.empty() ? "" : ", ").append(name);
        missing.append(" (pool ").append(pool).append(")");
    }
    if (missing.empty()) {
        return allRight("runtime classes",
                        names.empty() ? "none: pools use the nodes' own runtime" : names);
    }
    return {Level::Fail, "runtime classes",
            "pools name some that the cluster does not have: " + missing + "; it has " +
                (names.empty() ? "none" : names),
            "kubectl apply a RuntimeClass of that name, or name another in template.runtimeClass "
            "of the pool"};
}

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
                                "build one from the folder that `hearth agent-folder` writes, and "
                                "name it with --agent-image"});
        }
        return findings;
    } catch (const Error& e) {
        return {{Level::Fail, "cluster", e.what(), e.hint()}};
    }
}

}  // namespace hearth::cli
