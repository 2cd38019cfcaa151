#include <algorithm>
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
    const Json& volumes = plain["spec"]["volumes"];
    CHECK(std::any_of(volumes.begin(), volumes.end(), [](const Json& volume) {
        return volume["name"] == "run" && volume["emptyDir"]["medium"] == "Memory";
    }));
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

TEST_CASE("devices are asked for by their resource, and images take none besides",
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
