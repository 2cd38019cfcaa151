#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pool/runtime/kubernetes/PodManifest.h"
#include "pool/runtime/kubernetes/PodView.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::kubernetes;

namespace {

const SandboxId kId = "sb_0123456789abcdef0123456789abcdef";
const std::string kIdentity(64, 'a');

Json knownPod(const SandboxSpec& spec = {}) {
    Json pod = podManifest(spec, {.id = kId,
                                  .instance = "aaaaaaaaaaaa",
                                  .agent_image = "agents:1",
                                  .server_key = std::string(64, 'b'),
                                  .created_unix_ms = 1'234});
    pod["metadata"]["uid"] = "u-1";
    return pod;
}

Json running(Json pod) {
    pod["status"] = {
        {"phase", "Running"},
        {"podIP", "10.1.2.3"},
        {"initContainerStatuses",
         Json::array({{{"name", kInitContainer},
                       {"state", {{"terminated", {{"message", kIdentity}, {"exitCode", 0}}}}}}})},
        {"containerStatuses",
         Json::array({{{"name", kSandboxContainer}, {"state", {{"running", Json::object()}}}}})}};
    return pod;
}

}  // namespace

TEST_CASE("a Pod contains the id, the labels and the time of its sandbox", "[unit][kubernetes]") {
    SandboxSpec spec;
    spec.labels = {{"pool", "a"}, {"generation", "7"}};
    const auto view = viewOf(knownPod(spec));
    REQUIRE(view);
    CHECK(view->info.id == kId);
    CHECK(view->info.labels == spec.labels);
    CHECK(view->info.created_unix_ms == 1'234);
    CHECK(view->info.alive);
    CHECK_FALSE(view->info.listening);
    CHECK_FALSE(view->agent);
}

TEST_CASE("an agent is identified by its Pod's address, UID and the key of its init container",
          "[unit][kubernetes]") {
    const auto view = viewOf(running(knownPod()));
    REQUIRE(view);
    REQUIRE(view->agent);
    CHECK(view->info.listening);
    CHECK(view->agent->address == "10.1.2.3");
    CHECK(view->agent->port == kAgentPort);
    CHECK(view->agent->pod_uid == "u-1");
    CHECK(view->agent->identity.text() == kIdentity);
}

TEST_CASE("a Pod without a part of its agent's identity is not listening", "[unit][kubernetes]") {
    Json pod = running(knownPod());
    SECTION("no address") {
        pod["status"].erase("podIP");
    }
    SECTION("no key") {
        pod["status"].erase("initContainerStatuses");
    }
    SECTION("no key, but words") {
        pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["message"] = "failed";
    }
    SECTION("a container that does not run") {
        pod["status"]["containerStatuses"][0]["state"] = {{"waiting", Json::object()}};
    }
    const auto view = viewOf(pod);
    REQUIRE(view);
    CHECK(view->info.alive);
    CHECK_FALSE(view->info.listening);
}

TEST_CASE("a Pod that has ended, or is being deleted, is not alive", "[unit][kubernetes]") {
    Json pod = running(knownPod());
    SECTION("failed") {
        pod["status"]["phase"] = "Failed";
    }
    SECTION("succeeded") {
        pod["status"]["phase"] = "Succeeded";
    }
    SECTION("deleted") {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    }
    SECTION("its container has ended") {
        pod["status"]["containerStatuses"][0]["state"] = {{"terminated", {{"exitCode", 137}}}};
    }
    const auto view = viewOf(pod);
    REQUIRE(view);
    CHECK_FALSE(view->info.alive);
    CHECK_FALSE(view->info.listening);
}

TEST_CASE("a Pod that the kernel ended for memory says so", "[unit][kubernetes]") {
    Json pod = running(knownPod());
    const auto ended = [&](const char* reason, int status) {
        pod["status"]["containerStatuses"][0]["state"] = {
            {"terminated", {{"reason", reason}, {"exitCode", status}}}};
        return viewOf(pod)->info;
    };
    CHECK_FALSE(viewOf(pod)->info.out_of_memory);
    const SandboxInfo of_memory = ended("OOMKilled", 137);
    CHECK_FALSE(of_memory.alive);
    CHECK(of_memory.out_of_memory);
    CHECK(std::string(wordsOfEnd(of_memory)) == "its container ran out of memory");
    CHECK_FALSE(ended("Error", 137).out_of_memory);
    // The container outlived a process that the kernel killed, and has ended by itself.
    CHECK_FALSE(ended("OOMKilled", 0).out_of_memory);
}

TEST_CASE("the reason that keeps a Pod from running is reported", "[unit][kubernetes]") {
    Json pod = knownPod();
    std::string why;
    SECTION("its image") {
        pod["status"]["containerStatuses"] = Json::array(
            {{{"name", kSandboxContainer},
              {"state",
               {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}}});
        why = "ErrImagePull: no such image";
    }
    SECTION("no node") {
        pod["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                                    {"status", "False"},
                                                    {"reason", "Unschedulable"},
                                                    {"message", "0/1 nodes are available"}}});
        why = "Unschedulable: 0/1 nodes are available";
    }
    CHECK(viewOf(pod)->info.trouble == why);
}

TEST_CASE("a Pod that will never run counts as ended", "[unit][kubernetes]") {
    Json pod = knownPod();
    const auto waits = [&](const char* reason) {
        pod["status"]["initContainerStatuses"] = Json::array(
            {{{"name", kInitContainer}, {"state", {{"waiting", {{"reason", reason}}}}}}});
        return viewOf(pod)->info;
    };
    CHECK(waits("PodInitializing").alive);
    CHECK(waits("ErrImagePull").alive);  // the kubelet tries again
    CHECK_FALSE(waits("ImagePullBackOff").alive);
    CHECK(waits("ImagePullBackOff").trouble == "ImagePullBackOff");
}

TEST_CASE("foreign Pods and other objects are no sandboxes", "[unit][kubernetes]") {
    Json pod = knownPod();
    SECTION("no label") {
        pod["metadata"].erase("labels");
    }
    SECTION("a label of another form") {
        pod["metadata"]["labels"][kSandboxLabel] = GENERATE("", "sb-", "sb-12", "x");
    }
    SECTION("nothing") {
        pod = GENERATE(Json(), Json::array(), Json("pod"), Json::object());
    }
    CHECK_FALSE(viewOf(pod));
}

TEST_CASE("a Pod is hardened: no root, no capability, no token, nothing of the host",
          "[unit][kubernetes]") {
    const Json spec = knownPod().at("spec");
    CHECK(spec.at("automountServiceAccountToken") == false);
    CHECK(spec.at("enableServiceLinks") == false);
    CHECK(spec.at("restartPolicy") == "Never");
    CHECK(spec.at("securityContext").at("runAsNonRoot") == true);
    CHECK(spec.at("securityContext").at("seccompProfile").at("type") == "RuntimeDefault");
    for (const char* kind : {"hostNetwork", "hostPID", "hostIPC"}) CHECK_FALSE(spec.contains(kind));
    for (const char* list : {"initContainers", "containers"}) {
        REQUIRE(spec.at(list).size() == 1);
        const Json& container = spec.at(list)[0];
        const Json& context = container.at("securityContext");
        CHECK(context.at("allowPrivilegeEscalation") == false);
        CHECK(context.at("readOnlyRootFilesystem") == true);
        CHECK(context.at("capabilities").at("drop") == Json::array({"ALL"}));
        for (const char* each : {"cpu", "memory", "ephemeral-storage"}) {
            CHECK(container.at("resources").at("limits").contains(each));
        }
    }
    for (const Json& volume : spec.at("volumes")) {
        CHECK(volume.at("emptyDir").contains("sizeLimit"));
    }
    // A neighbour of the agent cannot change its files.
    for (const Json& mount : spec.at("containers")[0].at("volumeMounts")) {
        if (mount.at("mountPath") == "/.hearth") CHECK(mount.at("readOnly") == true);
    }
}
