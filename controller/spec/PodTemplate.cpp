#include "controller/spec/PodTemplate.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::controller {
namespace {

constexpr std::size_t kMostTemplate = std::size_t{32} * 1024;
constexpr std::size_t kMostTemplateItems = 64;

/// The fields of a PodSpec that say where a Pod runs and what it finds there.
constexpr std::array<const char*, 13> kPassed{"affinity",
                                              "dnsConfig",
                                              "dnsPolicy",
                                              "hostAliases",
                                              "imagePullSecrets",
                                              "nodeSelector",
                                              "overhead",
                                              "preemptionPolicy",
                                              "priorityClassName",
                                              "resourceClaims",
                                              "schedulerName",
                                              "tolerations",
                                              "topologySpreadConstraints"};

/// Excludes files of the node, and Secrets, which may be the server's own: they share a namespace.
constexpr std::array<std::string_view, 8> kVolumeKinds{
    "configMap", "csi",   "downwardAPI", "emptyDir",
    "ephemeral", "image", "nfs",         "persistentVolumeClaim"};
/// Volumes that Hearth makes, and the paths at which they are mounted.
constexpr std::array<std::string_view, 6> kOurVolumes{"inside",    "key", "run",
                                                      "workspace", "tmp", "layer"};
constexpr std::array<std::string_view, 5> kOurPlaces{"/.hearth", "/.hearth-key", "/workspace",
                                                     "/tmp", "/dev"};
/// With this variable a container gets devices if NVIDIA's runtime is the node's default.
constexpr std::string_view kDevices = "NVIDIA_VISIBLE_DEVICES";
/// The resources that `template.resources` sets.
constexpr std::array<std::string_view, 3> kOurResources{"cpu", "memory", "ephemeral-storage"};

template <typename List>
bool among(const List& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

std::string textIn(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() && found->is_string()
               ? found->get<std::string>()
               : "";
}

/// False for a path that Hearth uses, or one below it, or one that the kubelet reads differently.
bool isFreePlace(const std::string& path) {
    const std::filesystem::path place(path);
    if (!place.is_absolute() || !place.has_filename() || place != place.lexically_normal() ||
        path.find("//") != std::string::npos) {
        return false;
    }
    return std::none_of(kOurPlaces.begin(), kOurPlaces.end(), [&](std::string_view ours) {
        return path == ours || path.starts_with(std::string(ours) + "/");
    });
}

void readNotes(Fields fields) {
    for (const char* key : {"labels", "annotations"}) {
        const Json* notes = fields.find(key);
        if (notes == nullptr) continue;
        if (!notes->is_object()) {
            fields.complain(key, "must be an object");
            continue;
        }
        for (const auto& [name, value] : notes->items()) {
            if (!value.is_string()) {
                fields.complain(key, "must have strings only: " + name);
            } else if (name.starts_with("hearth.dev/") || name.starts_with("app.kubernetes.io/")) {
                fields.complain(key, "may not have " + name + ", which Hearth sets");
            }
        }
    }
    fields.finish();
}

void readVolumes(Fields& spec) {
    spec.items("volumes", kMostTemplateItems, [&](const Json& volume, const std::string& at) {
        const std::string name = textIn(volume, "name");
        if (name.empty()) return spec.tell({at + "/name", "is missing"});
        if (among(kOurVolumes, name)) {
            return spec.tell({at + "/name", "is a name that Hearth uses: choose another"});
        }
        for (const auto& [kind, value] : volume.items()) {
            if (kind == "csi" && value.is_object() && value.contains("nodePublishSecretRef")) {
                spec.tell({at + "/csi/nodePublishSecretRef",
                           "names a Secret of the servers' namespace: use a claim whose "
                           "PersistentVolume names it"});
            }
            if (kind == "name" || among(kVolumeKinds, kind)) continue;
            std::string reason = "is not a kind of volume for sandboxes; allowed:";
            for (const std::string_view each : kVolumeKinds) reason.append(" ").append(each);
            std::string pointer = at;
            spec.tell({pointer.append("/").append(kind), std::move(reason)});
        }
    });
}

void readEnvironment(Fields& sandbox) {
    sandbox.items("env", kMostTemplateItems, [&](const Json& variable, const std::string& at) {
        const std::string name = textIn(variable, "name");
        if (name.starts_with("HEARTH_")) {
            sandbox.tell({at + "/name", "may not begin with HEARTH_"});
        } else if (name == kDevices) {
            sandbox.tell({at + "/name", "is set by template.gpu"});
        }
        if (variable.is_object() && variable.contains("valueFrom")) {
            sandbox.tell({at + "/valueFrom", "is not supported: give the variable a value"});
        }
    });
}

void readMounts(Fields& sandbox) {
    sandbox.items("volumeMounts", kMostTemplateItems,
                  [&](const Json& mount, const std::string& at) {
                      if (!isFreePlace(textIn(mount, "mountPath"))) {
                          sandbox.tell({at + "/mountPath",
                                        "must be an absolute path in its plain form, outside of "
                                        "/workspace, /tmp, /dev "
                                        "and /.hearth"});
                      }
                      if (mount.is_object() && mount.contains("mountPropagation")) {
                          sandbox.tell({at + "/mountPropagation", "would reach into the node"});
                      }
                  });
}

void readResources(Fields resources) {
    resources.find("claims");
    for (const char* key : {"limits", "requests"}) {
        const Json* amounts = resources.find(key);
        if (amounts == nullptr) continue;
        if (!amounts->is_object()) {
            resources.complain(key, "must be an object");
            continue;
        }
        for (const auto& [name, value] : amounts->items()) {
            if (among(kOurResources, name)) {
                resources.complain(key + std::string("/") + name, "is set by template.resources");
            }
        }
    }
    resources.finish();
}

void readContainers(Fields& spec, const Fields::Wrong& wrong) {
    spec.items("containers", kMostTemplateItems, [&](const Json& container, const std::string& at) {
        Fields sandbox(container, at, wrong, Fields::Absent::Fine);
        if (textIn(container, "name") != "sandbox") {
            return sandbox.complain("name", "must be \"sandbox\": a Pod has no other container");
        }
        sandbox.find("name");
        readEnvironment(sandbox);
        readMounts(sandbox);
        sandbox.items("volumeDevices", kMostTemplateItems, [](const Json&, const std::string&) {});
        readResources(sandbox.object("resources"));
        sandbox.finish();
    });
}

}  // namespace

void readPodTemplate(Fields fields, Json& out) {
    const Fields::Wrong wrong = [&fields](FieldError error) { fields.tell(std::move(error)); };
    readNotes(fields.object("metadata"));
    Fields spec = fields.object("spec");
    for (const char* key : kPassed) spec.find(key);
    for (const char* key :
         {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "securityContext", "serviceAccountName",
          "automountServiceAccountToken", "shareProcessNamespace", "restartPolicy"}) {
        if (spec.find(key) != nullptr) {
            spec.complain(key, "cannot be set here: it would weaken the isolation of sandboxes");
        }
    }
    if (spec.find("runtimeClassName") != nullptr) {
        spec.complain("runtimeClassName", "is set by template.runtimeClass");
    }
    readVolumes(spec);
    readContainers(spec, wrong);
    spec.finish();
    fields.finish();
    if (dumpJson(fields.json()).size() > kMostTemplate) {
        fields.complain("", "must be at most 32 KiB");
    }
    out = fields.json();
}

}  // namespace hearth::controller
