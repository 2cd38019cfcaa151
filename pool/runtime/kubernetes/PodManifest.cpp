#include "pool/runtime/kubernetes/PodManifest.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "pool/spec/FileLimits.h"

namespace hearth::pool::kubernetes {
namespace {

constexpr int kUid = 1000;
constexpr const char* kInside = "/.hearth";
constexpr const char* kKeyFolder = "/.hearth-key";
constexpr const char* kKeyFile = "/.hearth-key/identity";
constexpr const char* kTold = "/dev/termination-log";
/// A sandbox that waits for a claim needs little processor time, so a node fits many more.
constexpr std::uint32_t kIdleShare = 10;
constexpr std::uint32_t kLeastMilliCpu = 10;

std::string bytes(std::uint64_t count) {
    return std::to_string(count);
}

std::string milli(std::uint32_t count) {
    return std::to_string(count) + "m";
}

Json volumeMount(const char* name, const char* path, bool read_only = false) {
    return {{"name", name}, {"mountPath", path}, {"readOnly", read_only}};
}

Json emptyDir(const char* name, std::uint64_t size, bool in_memory) {
    Json volume{{"sizeLimit", bytes(size)}};
    if (in_memory) volume["medium"] = "Memory";
    return {{"name", name}, {"emptyDir", std::move(volume)}};
}

Json confined() {
    return {{"allowPrivilegeEscalation", false},
            {"readOnlyRootFilesystem", true},
            {"privileged", false},
            {"capabilities", {{"drop", Json::array({"ALL"})}}}};
}

Json resources(const SandboxSpec& spec, const std::vector<std::string>& devices) {
    const SandboxLimits& limits = spec.limits;
    Json most{{"cpu", milli(limits.milli_cpu)}, {"memory", bytes(limits.memory_bytes)}};
    const std::uint32_t idle = std::max(limits.milli_cpu / kIdleShare, kLeastMilliCpu);
    Json least{{"cpu", milli(std::min(idle, limits.milli_cpu))},
               {"memory", bytes(limits.memory_bytes)}};
    if (spec.storage == Storage::Disk) {
        // The kubelet counts both volumes and the containers' logs.
        const std::uint64_t disk = limits.workspace_bytes + limits.tmp_bytes + (16U << 20U);
        most["ephemeral-storage"] = bytes(disk);
    }
    std::map<std::string, std::size_t> counts;
    for (const std::string& resource : devices) ++counts[resource];
    for (const auto& [resource, count] : counts) most[resource] = std::to_string(count);
    return {{"limits", std::move(most)}, {"requests", std::move(least)}};
}

Json initContainer(const SandboxSpec& spec, const PodPlaces& places) {
    return {{"name", kInitContainer},
            {"image", places.agent_image},
            {"imagePullPolicy", "IfNotPresent"},
            {"command", Json::array({"/hearth/agent", "--begin-pod", kInside, kKeyFile, kTold})},
            {"terminationMessagePath", kTold},
            {"securityContext", confined()},
            {"resources", resources(spec, {})},
            {"volumeMounts",
             Json::array({volumeMount("inside", kInside), volumeMount("key", kKeyFolder)})}};
}

Json sandboxContainer(const SandboxSpec& spec, const PodPlaces& places) {
    Json environment = Json::array(
        {{{"name", "HEARTH_POD"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.uid"}}}}}},
         {{"name", "HEARTH_SANDBOX"}, {"value", places.id}},
         {{"name", "HEARTH_CPUS"}, {"value", std::to_string(wholeCpus(spec.limits))}}});
    // If NVIDIA's runtime is the node's default, an image could take all GPUs.
    if (spec.gpus.empty()) {
        environment.push_back({{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "void"}});
    }
    return {{"name", kSandboxContainer},
            {"image", spec.image},
            {"imagePullPolicy", "IfNotPresent"},
            {"command",
             Json::array({"/.hearth/agent", "--tcp", std::to_string(kAgentPort), "--server-key",
                          places.server_key, "--pod", "$(HEARTH_POD)", "--identity", kKeyFile})},
            {"workingDir", "/"},
            {"env", environment},
            {"ports", Json::array({{{"name", "agent"}, {"containerPort", kAgentPort}}})},
            {"securityContext", confined()},
            {"resources", resources(spec, spec.gpus)},
            {"volumeMounts",
             Json::array({volumeMount("inside", kInside, true), volumeMount("key", kKeyFolder),
                          volumeMount("run", kRunPlace), volumeMount("workspace", "/workspace"),
                          volumeMount("tmp", "/tmp")})}};
}

/// Adds the items of one list to another, or fields of one object to another; keeps existing ones.
void add(Json& ours, const Json& theirs) {
    if (theirs.is_array()) {
        for (const Json& item : theirs) ours.push_back(item);
    } else if (theirs.is_object()) {
        for (const auto& [key, value] : theirs.items()) {
            if (!ours.contains(key)) ours[key] = value;
        }
    }
}

/// The pool's declaration checked the template (readPodTemplate): it changes nothing set here.
void addTemplate(Json& pod, const std::string& text) {
    const Json extra = text.empty() ? Json() : Json::parse(text, nullptr, false);
    if (!extra.is_object()) return;
    const Json metadata = extra.value("metadata", Json::object());
    for (const char* key : {"labels", "annotations"}) {
        if (metadata.contains(key)) add(pod["metadata"][key], metadata[key]);
    }
    Json spec = extra.value("spec", Json::object());
    const Json containers = spec.value("containers", Json::array());
    if (spec.contains("volumes")) add(pod["spec"]["volumes"], spec["volumes"]);
    Json& sandbox = pod["spec"]["containers"][0];
    for (const Json& container : containers) {
        for (const char* key : {"env", "volumeMounts", "volumeDevices"}) {
            if (container.contains(key)) add(sandbox[key], container[key]);
        }
        const Json amounts = container.value("resources", Json::object());
        for (const auto& [key, value] : amounts.items()) add(sandbox["resources"][key], value);
    }
    spec.erase("containers");
    spec.erase("volumes");
    add(pod["spec"], spec);
}

/// Mounts a folder of the volume that the Pods of all pools share; each Pod sees only its folder.
void addLayer(Json& spec, const PodPlaces& places) {
    Json& sandbox = spec["containers"][0];
    spec["volumes"].push_back(
        {{"name", "layer"},
         {"persistentVolumeClaim", {{"claimName", places.layer_claim}, {"readOnly", true}}}});
    Json mounted = volumeMount("layer", kLayerPlace, true);
    mounted["subPath"] = places.layer;
    sandbox["volumeMounts"].push_back(std::move(mounted));
    sandbox["env"].push_back({{"name", "HEARTH_LAYER"}, {"value", kLayerPlace}});
}

/// The pool's name; empty if it belongs to none.
std::string poolOf(const SandboxSpec& spec) {
    const auto found = spec.labels.find("pool");
    return found == spec.labels.end() ? "" : found->second;
}

}  // namespace

std::string podName(const SandboxId& id) {
    return "sb-" + id.substr(id.find('_') + 1);
}

Json podManifest(const SandboxSpec& spec, const PodPlaces& places) {
    constexpr std::uint64_t kInsideBytes = 64ULL << 20U;
    const bool in_memory = spec.storage == Storage::Memory;
    Json pod{{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata",
              {{"name", podName(places.id)},
               {"labels",
                {{"app.kubernetes.io/managed-by", "hearth"},
                 {kInstanceLabel, places.instance},
                 {kSandboxLabel, podName(places.id)},
                 {kPoolLabel, poolOf(spec)}}},
               {"annotations",
                {{kCreatedNote, std::to_string(places.created_unix_ms)},
                 {kLabelsNote, dumpJson(Json(spec.labels))}}}}},
             {"spec",
              {{"restartPolicy", "Never"},
               {"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"shareProcessNamespace", false},
               {"hostname", "sandbox"},
               {"terminationGracePeriodSeconds", 0},
               {"securityContext",
                {{"runAsNonRoot", true},
                 {"runAsUser", kUid},
                 {"runAsGroup", kUid},
                 {"fsGroup", kUid},
                 {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
               {"initContainers", Json::array({initContainer(spec, places)})},
               {"containers", Json::array({sandboxContainer(spec, places)})},
               {"volumes",
                Json::array({emptyDir("inside", kInsideBytes, true), emptyDir("key", 4096, true),
                             emptyDir("run", runBytes(spec.limits), true),
                             emptyDir("workspace", spec.limits.workspace_bytes, in_memory),
                             emptyDir("tmp", spec.limits.tmp_bytes, in_memory)})}}}};
    if (!places.owner.is_null()) {
        pod["metadata"]["ownerReferences"] = Json::array({places.owner});
    }
    if (!spec.runtime_class.empty()) pod["spec"]["runtimeClassName"] = spec.runtime_class;
    if (!places.layer.empty()) addLayer(pod["spec"], places);
    addTemplate(pod, spec.pod_template);
    return pod;
}

}  // namespace hearth::pool::kubernetes
