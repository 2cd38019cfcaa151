#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pool/runtime/docker/ContainerConfig.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::docker;

namespace {

Json made(SandboxSpec spec = {}, std::vector<std::string> volumes = {}) {
    spec.labels = {{"pool", "p"}};
    return containerConfig(spec, {.id = "sb_1",
                                  .instance = "abc",
                                  .image = "sha256:1",
                                  .inside = "/data/docker/0123",
                                  .start = "/run/start/sb_1",
                                  .created_unix_ms = 42,
                                  .volumes = std::move(volumes),
                                  .image_env = {},
                                  .image_workdir = ""});
}

}  // namespace

TEST_CASE("a container has no capability, no network, no writable root and no restart",
          "[unit][docker]") {
    const Json host = made().at("HostConfig");
    CHECK(host.at("CapDrop") == Json::array({"ALL"}));
    CHECK_FALSE(host.contains("CapAdd"));
    CHECK(host.at("Privileged") == false);
    CHECK(host.at("NetworkMode") == "none");
    CHECK(host.at("ReadonlyRootfs") == true);
    CHECK(host.at("IpcMode") == "private");
    CHECK(host.at("Init") == false);
    CHECK(host.at("LogConfig").at("Type") == "none");
    CHECK(host.at("RestartPolicy").at("Name") == "no");
    CHECK(host.at("SecurityOpt").at(0) == "no-new-privileges:true");
    const auto& masked = host.at("MaskedPaths");
    for (const char* path : {"/sys/class", "/sys/devices", "/sys/fs/bpf", "/sys/kernel",
                             "/proc/kcore", "/proc/keys"}) {
        CHECK(std::ranges::find(masked, Json(path)) != masked.end());
    }
    for (const char* path : {"/sys", "/sys/fs", "/sys/fs/cgroup"}) {  // its own control group
        CHECK(std::ranges::find(masked, Json(path)) == masked.end());
    }
    CHECK(host.at("CgroupnsMode") == "private");
}

TEST_CASE("a layer is mounted read-only and told to the agent", "[unit][docker]") {
    const auto layerOf = [](const std::string& layer) {
        const Json made = containerConfig({}, {.id = "sb_1",
                                               .instance = "abc",
                                               .image = "sha256:1",
                                               .inside = "/data/docker/0123",
                                               .layer = layer,
                                               .start = "/run/start/sb_1",
                                               .volumes = {},
                                               .image_env = {},
                                               .image_workdir = ""});
        Json found{{"env", false}, {"mount", nullptr}};
        for (const Json& entry : made.at("Env")) {
            if (entry == "HEARTH_LAYER=/.hearth/layer/site-packages") found["env"] = true;
        }
        for (const Json& mount : made.at("HostConfig").at("Mounts")) {
            if (mount.at("Target") == kLayerPlace) found["mount"] = mount;
        }
        return found;
    };
    CHECK(layerOf("") == Json({{"env", false}, {"mount", nullptr}}));
    const Json there = layerOf("/data/layers/sha256-1");
    CHECK(there.at("env") == true);
    CHECK(there.at("mount").at("Source") == "/data/layers/sha256-1");
    CHECK(there.at("mount").at("ReadOnly") == true);
}

TEST_CASE("the filter goes to Docker in its own form", "[unit][docker]") {
    const std::string option = made().at("HostConfig").at("SecurityOpt").at(1).get<std::string>();
    REQUIRE(option.starts_with("seccomp={"));
    const Json filter = parseJson(option.substr(8));
    CHECK(filter.at("defaultAction") == "SCMP_ACT_ERRNO");
    CHECK(filter.at("architectures") == Json::array({"SCMP_ARCH_X86_64"}));
    const Json& allowed = filter.at("syscalls").at(0);
    REQUIRE(allowed.at("action") == "SCMP_ACT_ALLOW");
    const auto has = [&](const char* name) {
        const Json& names = allowed.at("names");
        return std::ranges::find(names, Json(name)) != names.end();
    };
    CHECK(has("read"));
    CHECK(has("capset"));
    CHECK_FALSE(has("ptrace"));
    CHECK_FALSE(has("mount"));
}

TEST_CASE("limits are the sandbox's own, and nothing is swapped", "[unit][docker]") {
    SandboxSpec spec;
    spec.limits = {.milli_cpu = 500,
                   .memory_bytes = 128 << 20,
                   .pids = 64,
                   .workspace_bytes = 32 << 20,
                   .tmp_bytes = 8 << 20};
    const Json host = made(spec).at("HostConfig");
    CHECK(host.at("Memory") == 128 << 20);
    CHECK(host.at("MemorySwap") == 128 << 20);
    CHECK(host.at("PidsLimit") == 64);
    CHECK(host.at("CpuQuota") == 50'000);
    CHECK(host.at("CpuPeriod") == 100'000);
    CHECK(host.at("ShmSize") == 8 << 20);  // no more than /tmp
    const std::string run = host.at("Tmpfs").at("/.hearth/run").get<std::string>();
    CHECK(run.find("size=16777216,") != std::string::npos);
    CHECK(run.find(",exec,") != std::string::npos);
    CHECK(run.find("mode=0755,uid=1000,gid=1000") != std::string::npos);
    CHECK(host.at("Ulimits").at(0) == Json{{"Name", "nofile"}, {"Soft", 1'024}, {"Hard", 65'536}});
    const std::string workspace = host.at("Tmpfs").at("/workspace").get<std::string>();
    CHECK(workspace.find("size=33554432,") != std::string::npos);
    CHECK(workspace.find(",exec,") != std::string::npos);
    CHECK(workspace.find("uid=1000,gid=1000") != std::string::npos);
    CHECK(host.at("Tmpfs").at("/tmp").get<std::string>().find("size=8388608,") !=
          std::string::npos);
}

TEST_CASE("a container gets the GPUs of its spec by uuid and no others, whatever its image says",
          "[unit][docker]") {
    const auto has = [](const Json& list, const char* text) {
        return std::ranges::find(list, Json(text)) != list.end();
    };
    const auto locked = [](const Json& host) {
        for (const Json& limit : host.at("Ulimits")) {
            if (limit.at("Name") == "memlock") return limit.at("Hard").get<std::uint64_t>();
        }
        return std::uint64_t{0};
    };
    const Json none = made();
    CHECK_FALSE(none.at("HostConfig").contains("DeviceRequests"));
    CHECK(has(none.at("Env"), "NVIDIA_VISIBLE_DEVICES=void"));
    CHECK(locked(none.at("HostConfig")) == 65'536);
    CHECK(has(none.at("HostConfig").at("MaskedPaths"), "/proc/driver"));

    SandboxSpec spec;
    spec.gpus = {"GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76",
                 "GPU-7f0cd4e5-0e5b-4c37-a8ab-9d3e4c1b2a60"};
    const Json two = made(spec);
    CHECK(two.at("HostConfig").at("DeviceRequests") ==
          Json::array(
              {{{"Driver", "nvidia"},
                {"DeviceIDs", spec.gpus},
                {"Capabilities", Json::array({Json::array({"gpu", "compute", "utility"})})}}}));
    CHECK_FALSE(has(two.at("Env"), "NVIDIA_VISIBLE_DEVICES=void"));
    CHECK(locked(two.at("HostConfig")) == spec.limits.memory_bytes);
    CHECK(has(two.at("HostConfig").at("MaskedPaths"), "/proc/driver"));
    spec.gpus = {"MIG-a7d3f5b2-61c4-5d20-9f0e-2b8c7d1e4f36"};
    CHECK_FALSE(has(made(spec).at("HostConfig").at("MaskedPaths"), "/proc/driver"));
}

TEST_CASE("the agent is the entrypoint; nothing of the image runs by itself", "[unit][docker]") {
    const Json config = made();
    CHECK(config.at("Image") == "sha256:1");
    CHECK(config.at("Entrypoint") == Json::array({"/.hearth/agent"}));
    CHECK(config.at("Cmd") == Json::array({"--receive", "/.hearth/start/socket"}));
    CHECK(config.at("Healthcheck").at("Test") == Json::array({"NONE"}));
    CHECK(config.at("User") == "1000:1000");
    const Json& mounts = config.at("HostConfig").at("Mounts");
    REQUIRE(mounts.size() == 2);
    for (const Json& mount : mounts) CHECK(mount.at("ReadOnly") == true);
}

TEST_CASE("a volume that the image declares is an empty read-only folder", "[unit][docker]") {
    const Json mounts = made({}, {"/data", "/workspace", "/tmp/x", "/proc/y", "relative", "/"})
                            .at("HostConfig")
                            .at("Mounts");
    REQUIRE(mounts.size() == 3);
    CHECK(mounts.at(2).at("Type") == "tmpfs");
    CHECK(mounts.at(2).at("Target") == "/data");
    CHECK(mounts.at(2).at("ReadOnly") == true);
}

TEST_CASE("labels hold instance, sandbox, time and the pool's own labels", "[unit][docker]") {
    const Json labels = made().at("Labels");
    CHECK(labels.at(kInstanceLabel) == "abc");
    CHECK(labels.at(kSandboxLabel) == "sb_1");
    CHECK(labels.at(kCreatedLabel) == "42");
    CHECK(labels.at(kInsideLabel) == "0123");
    CHECK(labels.at(std::string(kOwnLabel) + "pool") == "p");
}

TEST_CASE("an image's variables reach the agent as data, without those that steer loaders",
          "[unit][docker]") {
    ContainerPlaces places;
    places.id = "sb_1";
    places.inside = "/data/docker/0123";
    places.image_env = {"PATH=/opt/go/bin:/usr/bin", "GREETING=hello", "LD_PRELOAD=/evil.so"};
    places.image_workdir = "/srv";
    std::string brought;
    std::vector<std::string> names;
    const Json config = containerConfig(SandboxSpec{}, places);
    for (const Json& variable : config.at("Env")) {
        const std::string text = variable.get<std::string>();
        names.push_back(text.substr(0, text.find('=')));
        if (names.back() == "PATH") CHECK(text == "PATH=/opt/go/bin:/usr/bin");
        if (names.back() == "HEARTH_IMAGE") brought = text.substr(text.find('=') + 1);
    }
    CHECK(names == std::vector<std::string>{"PATH", "HEARTH_SANDBOX", "HEARTH_CPUS", "HEARTH_IMAGE",
                                            "NVIDIA_VISIBLE_DEVICES"});
    const Json json = parseJson(brought);
    CHECK(json["workdir"] == "/srv");
    CHECK(json["env"].dump().find("GREETING=hello") != std::string::npos);
    CHECK(json["env"].dump().find("LD_PRELOAD") == std::string::npos);
    CHECK_FALSE(json.contains("languages"));
}
