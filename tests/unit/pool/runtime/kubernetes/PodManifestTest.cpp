#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Ids.h"
#include "pool/runtime/kubernetes/PodManifest.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::kubernetes;

namespace {

Json podOf(const SandboxSpec& spec) {
    return podManifest(spec, {newId("sb_"), "aaaaaaaaaaaa", "agents:1", std::string(64, '1'), 1});
}

const Json& sandboxOf(const Json& pod) {
    REQUIRE(pod["spec"]["containers"].size() == 1);
    return pod["spec"]["containers"][0];
}

bool hasEnvironment(const Json& container, const char* name) {
    for (const Json& one : container["env"]) {
        if (one["name"] == name) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a pool's template is added to the Pod, and replaces nothing in it",
          "[unit][kubernetes]") {
    SandboxSpec spec;
    spec.image = "images/python";
    const Json plain = podOf(spec);
    spec.runtime_class = "gvisor";
    spec.pod_template = R"({"metadata": {"labels": {"team": "a"}},
        "spec": {"nodeSelector": {"zone": "b"}, "restartPolicy": "Always",
                 "volumes": [{"name": "models", "emptyDir": {}}],
                 "containers": [{"name": "sandbox", "image": "another",
                     "env": [{"name": "MODELS", "value": "/models"}],
                     "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                     "resources": {"limits": {"example.com/nic": 1, "cpu": "64"}}}]}})";
    const Json pod = podOf(spec);
    CHECK(pod["metadata"]["labels"]["team"] == "a");
    CHECK(pod["spec"]["nodeSelector"]["zone"] == "b");
    CHECK(pod["spec"]["runtimeClassName"] == "gvisor");
    CHECK(pod["spec"]["restartPolicy"] == "Never");
    CHECK(pod["spec"]["volumes"].size() == plain["spec"]["volumes"].size() + 1);
    const Json& sandbox = sandboxOf(pod);
    CHECK(sandbox["image"] == "images/python");
    CHECK(hasEnvironment(sandbox, "MODELS"));
    CHECK(hasEnvironment(sandbox, "HEARTH_POD"));
    CHECK(sandbox["volumeMounts"].size() == sandboxOf(plain)["volumeMounts"].size() + 1);
    CHECK(sandbox["resources"]["limits"]["example.com/nic"] == 1);
    CHECK(sandbox["resources"]["limits"]["cpu"] == sandboxOf(plain)["resources"]["limits"]["cpu"]);
}

TEST_CASE("a Pod's volumes have a size each, and the agent's folder is read-only but for code",
          "[unit][kubernetes]") {
    SandboxSpec spec;
    spec.limits.memory_bytes = 256ULL << 20U;
    spec.limits.workspace_bytes = 1000;
    spec.limits.tmp_bytes = 2000;
    const Json disk = podOf(spec)["spec"];
    CHECK(disk["volumes"] == parseJson(R"([
        {"name": "inside", "emptyDir": {"sizeLimit": "67108864", "medium": "Memory"}},
        {"name": "key", "emptyDir": {"sizeLimit": "4096", "medium": "Memory"}},
        {"name": "run", "emptyDir": {"sizeLimit": "33554432", "medium": "Memory"}},
        {"name": "workspace", "emptyDir": {"sizeLimit": "1000"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "2000"}}])"));
    CHECK(disk["containers"][0]["volumeMounts"] == parseJson(R"([
        {"name": "inside", "mountPath": "/.hearth", "readOnly": true},
        {"name": "key", "mountPath": "/.hearth-key", "readOnly": false},
        {"name": "run", "mountPath": "/.hearth/run", "readOnly": false},
        {"name": "workspace", "mountPath": "/workspace", "readOnly": false},
        {"name": "tmp", "mountPath": "/tmp", "readOnly": false}])"));
    // The first container makes the folder where the second one has the volume of code.
    CHECK(disk["initContainers"][0]["volumeMounts"] == parseJson(R"([
        {"name": "inside", "mountPath": "/.hearth", "readOnly": false},
        {"name": "key", "mountPath": "/.hearth-key", "readOnly": false}])"));
    CHECK(disk["initContainers"][0]["command"][2] == "/.hearth");

    spec.storage = Storage::Memory;
    spec.limits.memory_bytes = 8ULL << 30U;
    const Json memory = podOf(spec)["spec"]["volumes"];
    CHECK(memory[2]["emptyDir"]["sizeLimit"] == "67108864");
    CHECK(memory[3]["emptyDir"]["medium"] == "Memory");
    CHECK(memory[4]["emptyDir"]["medium"] == "Memory");
}

TEST_CASE("a Pod requests devices by their resource, and images get none besides",
          "[unit][kubernetes]") {
    SandboxSpec spec;
    CHECK(hasEnvironment(sandboxOf(podOf(spec)), "NVIDIA_VISIBLE_DEVICES"));
    spec.gpus = {"nvidia.com/gpu", "nvidia.com/gpu"};
    const Json pod = podOf(spec);
    CHECK(sandboxOf(pod)["resources"]["limits"]["nvidia.com/gpu"] == "2");
    CHECK_FALSE(hasEnvironment(sandboxOf(pod), "NVIDIA_VISIBLE_DEVICES"));
}

TEST_CASE("a Pod sees its own layer of the volume that all share, read-only",
          "[unit][kubernetes]") {
    SandboxSpec spec;
    spec.image = "images/python";
    const Json pod = podManifest(spec, {.id = newId("sb_"),
                                        .instance = "aaaaaaaaaaaa",
                                        .agent_image = "agents:1",
                                        .server_key = std::string(64, '1'),
                                        .layer_claim = "shared",
                                        .layer = "layers/sha256-1"});
    const Json& volume = pod["spec"]["volumes"].back();
    CHECK(volume["persistentVolumeClaim"] == Json({{"claimName", "shared"}, {"readOnly", true}}));
    const Json& mount = sandboxOf(pod)["volumeMounts"].back();
    CHECK(mount["subPath"] == "layers/sha256-1");
    CHECK(mount["readOnly"] == true);
    CHECK(mount["mountPath"] == kLayerPlace);
    CHECK(hasEnvironment(sandboxOf(pod), "HEARTH_LAYER"));
    CHECK_FALSE(hasEnvironment(sandboxOf(podOf(spec)), "HEARTH_LAYER"));
}
