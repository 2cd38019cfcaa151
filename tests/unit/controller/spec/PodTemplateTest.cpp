#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "controller/spec/PodTemplate.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

/// Returns the places where the template is wrong; empty: none.
std::vector<std::string> wrongIn(const char* text) {
    std::vector<std::string> pointers;
    const Json json = Json::parse(text);
    const Fields::Wrong wrong = [&](const FieldError& error) { pointers.push_back(error.pointer); };
    Json out;
    readPodTemplate(Fields(json, "", wrong, Fields::Absent::Fine), out);
    CHECK(out == json);
    return pointers;
}

using Pointers = std::vector<std::string>;

}  // namespace

TEST_CASE("a Pod template may set labels, node rules, volumes and variables of a Pod",
          "[unit][controller]") {
    CHECK(wrongIn("{}").empty());
    CHECK(wrongIn(R"({"metadata": {"labels": {"team": "a"}, "annotations": {"cost": "7"}},
                      "spec": {"nodeSelector": {"gpu": "h100"},
                               "tolerations": [{"key": "gpu", "operator": "Exists"}],
                               "imagePullSecrets": [{"name": "registry"}],
                               "priorityClassName": "low",
                               "volumes": [{"name": "models", "persistentVolumeClaim":
                                            {"claimName": "models", "readOnly": true}}],
                               "containers": [{"name": "sandbox",
                                   "env": [{"name": "MODELS", "value": "/models"}],
                                   "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                                   "resources": {"limits": {"example.com/nic": 1}}}]}})")
              .empty());
}

TEST_CASE("a Pod template cannot weaken the isolation of a sandbox", "[unit][controller]") {
    const char* const key = GENERATE("hostNetwork", "hostPID", "hostIPC", "securityContext",
                                     "serviceAccountName", "automountServiceAccountToken",
                                     "restartPolicy", "shareProcessNamespace", "hostUsers");
    const std::string text = std::string(R"({"spec": {")") + key + R"(": true}})";
    CHECK(wrongIn(text.c_str()) == Pointers{std::string("/spec/") + key});
}

TEST_CASE("a Pod template cannot replace fields that Hearth sets", "[unit][controller]") {
    CHECK(wrongIn(R"({"metadata": {"labels": {"hearth.dev/instance": "x"}}})") ==
          Pointers{"/metadata/labels"});
    CHECK(wrongIn(R"({"metadata": {"annotations": {"a": 1}}})") ==
          Pointers{"/metadata/annotations"});
    CHECK(wrongIn(R"({"metadata": {"name": "mine"}})") == Pointers{"/metadata/name"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"name": "key", "emptyDir": {}}]}})") ==
          Pointers{"/spec/volumes/0/name"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"emptyDir": {}}]}})") ==
          Pointers{"/spec/volumes/0/name"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}})") ==
          Pointers{"/spec/volumes/0/hostPath"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"name": "a", "secret": {"secretName": "keys"}}]}})") ==
          Pointers{"/spec/volumes/0/secret"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"name": "a", "projected": {"sources": []}}]}})") ==
          Pointers{"/spec/volumes/0/projected"});
    CHECK(wrongIn(R"({"spec": {"volumes": [{"name": "a", "csi": {"driver": "d.example",
                      "nodePublishSecretRef": {"name": "keys"}}}]}})") ==
          Pointers{"/spec/volumes/0/csi/nodePublishSecretRef"});
    CHECK(wrongIn(R"({"spec": {"containers": [{"name": "sidecar"}]}})") ==
          Pointers{"/spec/containers/0/name"});
    CHECK(wrongIn(R"({"spec": {"initContainers": [{"name": "first"}]}})") ==
          Pointers{"/spec/initContainers"});
    CHECK(wrongIn(R"({"spec": {"runtimeClassName": "gvisor"}})") ==
          Pointers{"/spec/runtimeClassName"});
    const auto inSandbox = [](const std::string& field) {
        return wrongIn(
            (R"({"spec": {"containers": [{"name": "sandbox", )" + field + "}]}}").c_str());
    };
    const std::string at = "/spec/containers/0/";
    CHECK(inSandbox(R"("image": "another")") == Pointers{at + "image"});
    CHECK(inSandbox(R"("securityContext": {"privileged": true})") ==
          Pointers{at + "securityContext"});
    CHECK(inSandbox(R"("env": [{"name": "HEARTH_POD", "value": "x"}])") ==
          Pointers{at + "env/0/name"});
    CHECK(inSandbox(R"("env": [{"name": "A", "valueFrom": {"secretKeyRef": {}}}])") ==
          Pointers{at + "env/0/valueFrom"});
    CHECK(inSandbox(R"("env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])") ==
          Pointers{at + "env/0/name"});
    CHECK(inSandbox(R"("resources": {"limits": {"cpu": 64}})") ==
          Pointers{at + "resources/limits/cpu"});
    for (const char* path : {"", "models", "/", "/workspace", "/workspace/", "/workspace/in",
                             "/.hearth/x", "/a/../workspace", "/dev/shm", "//workspace",
                             "/./.hearth", "/a//../.hearth", "/a/", "/a/."}) {
        CAPTURE(path);
        CHECK(inSandbox(std::string(R"("volumeMounts": [{"name": "a", "mountPath": ")") + path +
                        R"("}])") == Pointers{at + "volumeMounts/0/mountPath"});
    }
}

TEST_CASE("a Pod template is an object of objects, and bounded", "[unit][controller]") {
    CHECK(wrongIn(R"({"spec": []})") == Pointers{"/spec"});
    CHECK(wrongIn(R"({"kind": "Pod"})") == Pointers{"/kind"});
    const std::string long_text(40'000, 'x');
    CHECK(wrongIn((R"({"spec": {"nodeSelector": {"a": ")" + long_text + R"("}}})").c_str()) ==
          Pointers{""});
}
