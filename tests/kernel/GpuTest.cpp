#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

namespace fs = std::filesystem;
using pool::SandboxId;

const std::string kGpu = "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76";
const std::string kMig = "MIG-a7d3f5b2-61c4-5d20-9f0e-2b8c7d1e4f36";
const std::string kAstray = "GPU-3d1a7a52-9b7e-4c0f-8a55-0f6f1f2f9c11";
const std::string kBroken = "GPU-7f0cd4e5-0e5b-4c37-a8ab-9d3e4c1b2a60";

/// A hook like that of NVIDIA's toolkit: it finds the root by the container's state and writes
/// links into it.
constexpr const char* kLinker = R"sh(#!/bin/sh
state=$(cat)
bundle=$(echo "$state" | sed 's/.*"bundle":"\([^"]*\)".*/\1/')
root=$(sed 's/.*"root":{"path":"\([^"]*\)".*/\1/' "$bundle/config.json")
ln -s libgpu.so "$root/usr/lib/gpu/libgpu.so.1" && mkdir "$root/dev/nvidia-caps/by-path" &&
echo cache > "$root/etc/new" && mv "$root/etc/new" "$root/etc/ld.so.cache"
)sh";

/// Returns the tree of the image that all sandboxes of a host share.
std::string treeOf(const Host& host) {
    return host.names().rootfs() + "/" + host.spec().image_digest.substr(7);
}

/// A driver without a GPU: harmless nodes, a library, a folder, and hooks that leave a trace.
class StandIn {
public:
    explicit StandIn(const Host& host) : data_(host.names().dataDir()) {
        for (const char* folder : {"/cdi", "/driver", "/driver/share"}) {
            sys::makeDirectory(data_ + folder, 0755);
        }
        sys::writeFile(data_ + "/driver/libgpu.so", "library", 0755);
        sys::writeFile(data_ + "/driver/share/model", "model", 0644);
        sys::writeFile(data_ + "/driver/link", kLinker, 0755);
        sys::writeFile(data_ + "/driver/trace",
                       "#!/bin/sh\nwhile read -r line; do :; done\n"
                       "echo $1 $(id -u) ${LD_PRELOAD-none} >> " +
                           data_ + "/trace\n",
                       0755);
        daemon_ = pool::listenAt(data_ + "/driver/socket", 0666);
        sys::writeFile(data_ + "/driver/fail", "#!/bin/sh\nexit 3\n", 0755);
        const auto hook = [&](const char* point, const char* program, const char* word) {
            return Json{{"hookName", point},
                        {"path", data_ + "/driver/" + program},
                        {"args", Json::array({program, word})}};
        };
        const auto mount = [&](const char* from, const char* to, const char* option) {
            return Json{{"hostPath", data_ + "/driver/" + from},
                        {"containerPath", to},
                        {"options", Json::array({"nosuid", "nodev", option})}};
        };
        const Json common{
            {"env", Json::array({"NVIDIA_VISIBLE_DEVICES=void", "CUDA_FAKE=1"})},
            {"deviceNodes", Json::array({{{"path", "/dev/nvidiactl"}, {"hostPath", "/dev/zero"}}})},
            {"mounts", Json::array({mount("libgpu.so", "/usr/lib/gpu/libgpu.so", "rbind"),
                                    mount("share", "/opt/gpu/share", "rbind"),
                                    mount("socket", "/run/gpu/socket", "noexec"),
                                    mount("libgpu.so", "/by-link/deep/lib.so", "rw")})}};
        fs::create_symlink("usr/../opt/linked", treeOf(host) + "/by-link");  // to nowhere yet
        fs::create_symlink("opt/../workspace", treeOf(host) + "/astray");
        const Json devices = Json::array(
            {{{"name", kGpu},
              {"containerEdits",
               {{"deviceNodes", Json::array({{{"path", "/dev/nvidia0"},
                                              {"type", "c"},
                                              {"major", 1},
                                              {"minor", 5},
                                              {"fileMode", 384},
                                              {"permissions", "rw"}}})},
                {"hooks", Json::array({hook("createRuntime", "trace", "made"),
                                       hook("createContainer", "link", ""),
                                       hook("poststop", "trace", "ended")})}}}},
             {{"name", kMig},
              {"containerEdits",
               {{"deviceNodes", Json::array({{{"path", "/dev/nvidia-caps/nvidia-cap1"},
                                              {"hostPath", "/dev/loop-control"},
                                              {"permissions", "r"}}})}}}},
             {{"name", kAstray},
              {"containerEdits",
               {{"mounts", Json::array({mount("libgpu.so", "/astray/lib.so", "ro")})}}}},
             {{"name", kBroken},
              {"containerEdits", {{"hooks", Json::array({hook("createRuntime", "fail", "")})}}}}});
        sys::writeFile(data_ + "/cdi/gpu.json",
                       dumpJson({{"cdiVersion", "0.6.0"},
                                 {"kind", "nvidia.com/gpu"},
                                 {"containerEdits", common},
                                 {"devices", devices}}),
                       0644);
    }

    /// Returns the text that the hooks wrote.
    std::string trace() const { return sys::readFile(data_ + "/trace").value_or(""); }

private:
    std::string data_;
    Fd daemon_;  ///< like the socket of the driver's persistence daemon
};

/// Returns `bytes`, or less if the machine lets its root lock only less.
std::uint64_t mayLock(std::uint64_t bytes) {
    const std::string status = sys::readFile("/proc/self/status").value_or("");
    const std::string own = status.substr(status.find("CapBnd:") + 7);
    const bool raises = (std::stoull(own, nullptr, 16) >> 24U & 1U) != 0;  // CAP_SYS_RESOURCE
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    return raises ? bytes : std::min<std::uint64_t>(bytes, limit.rlim_max);
}

SandboxId createWith(Host& host, const std::vector<std::string>& gpus) {
    pool::SandboxSpec spec = host.spec();
    spec.gpus = gpus;
    SandboxId id = newId("sb_");
    host.runtime().create(id, spec);
    return id;
}

std::string failure(Host& host, const std::vector<std::string>& gpus) {
    try {
        createWith(host, gpus);
    } catch (const std::exception& e) {
        return e.what();
    }
    return "created";
}

}  // namespace

TEST_CASE("oci: a sandbox with a GPU has its nodes, mounts, variables and what hooks made",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    const StandIn driver(host);
    const SandboxId id = createWith(host, {kGpu, kMig});
    SmallAgent agent(host.runtime().connect(id));
    const auto says = [&](const std::string& command) { return agent.run(command).output; };

    // Nodes, as the tenant sees and opens them.
    CHECK(says("id -u") == "1000\n");
    CHECK(says("head -c 4 /dev/nvidia0 | wc -c") == "4\n");
    CHECK(says("stat -c '%a %t:%T %u' /dev/nvidia0 /dev/nvidiactl") ==
          "600 1:5 1000\n666 1:5 1000\n");
    CHECK(says("echo x > /dev/nvidia0 && echo written") == "written\n");
    CHECK(says("exec 3< /dev/nvidia-caps/nvidia-cap1 && echo open") == "open\n");
    CHECK(says("exec 3<> /dev/nvidia-caps/nvidia-cap1 && echo open").find("open\n") ==
          std::string::npos);
    CHECK(agent.run("mknod /tmp/x c 1 5").exitCode() != 0);
    CHECK(agent.run("chmod 666 /dev/nvidia0").exitCode() != 0);
    CHECK(agent.run("rm -f /dev/nvidia0").exitCode() != 0);

    // Files.
    CHECK(says("cat /usr/lib/gpu/libgpu.so /opt/gpu/share/model") == "librarymodel");
    CHECK(says("cat /usr/lib/gpu/libgpu.so.1") == "library");
    CHECK(says("cat /opt/linked/deep/lib.so") == "library");
    CHECK(says("readlink /by-link") == "usr/../opt/linked\n");
    CHECK(says("cat /etc/ld.so.cache") == "cache\n");
    CHECK(says("cat /etc/passwd") == sys::readFile(treeOf(host) + "/etc/passwd").value());
    CHECK(agent.run("echo x > /opt/gpu/share/model").exitCode() != 0);
    CHECK(agent.run("test -d /dev/nvidia-caps/by-path").exitCode() == 0);
    CHECK(agent.run("test -S /run/gpu/socket").exitCode() == 0);
    // A MIG instance is found through /proc/driver, which is covered in other sandboxes.
    CHECK(says("grep -c ' /proc/driver ' /proc/self/mountinfo") == "0\n");
    // The sandbox's own root cannot write either: the file systems are sealed.
    for (const char* place : {"/opt/gpu", "/usr/lib/gpu", "/etc", "/dev/nvidia-caps"}) {
        const std::string inside = "/proc/" + std::to_string(host.initOf(id)) + "/root" + place;
        INFO(place);
        CHECK(::mkdir((inside + "/more").c_str(), 0755) == -1);
        CHECK(errno == EROFS);
    }

    // Variables, and the locked memory that a driver needs.
    CHECK(says("echo $NVIDIA_VISIBLE_DEVICES $CUDA_FAKE") == "void 1\n");
    CHECK(says("NVIDIA_VISIBLE_DEVICES=all sh -c 'echo $CUDA_FAKE'") == "1\n");
    CHECK(std::stoull(says("ulimit -l")) * 1024 == mayLock(host.spec().limits.memory_bytes));

    const sys::Cgroups cgroups = sys::Cgroups::detect();
    if (const auto group = cgroups.directory("devices", host.cgroupOf(id))) {
        const std::string rules = sys::readFile(*group + "/devices.list").value_or("");
        CHECK(rules.find("c 10:237 r\n") != std::string::npos);
    }
    CHECK(driver.trace() == "made 0 none\n");
    host.runtime().destroy(id);
    CHECK(driver.trace() == "made 0 none\nended 0 none\n");
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: a sandbox without a GPU beside one that has one sees nothing of it", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const StandIn driver(host);
    const SandboxId with = createWith(host, {kGpu, kMig});
    const SandboxId without = host.create();
    SmallAgent agent(host.runtime().connect(without));
    CHECK(
        agent.run("ls -d /dev/nvidia* /opt/gpu /usr/lib/gpu /etc/ld.so.cache 2>/dev/null").output ==
        "");
    CHECK(agent.run("grep -c ' /proc/driver ' /proc/self/mountinfo").output == "1\n");
    CHECK(agent.run("env").output.find("NVIDIA_") == std::string::npos);
    CHECK(agent.run("mknod /workspace/gpu c 10 237").exitCode() != 0);
    CHECK(agent.run("mknod /tmp/gpu c 10 237").exitCode() != 0);
    CHECK(agent.run("ulimit -l").output == "64\n");
    const sys::Cgroups cgroups = sys::Cgroups::detect();
    if (const auto group = cgroups.directory("devices", host.cgroupOf(without))) {
        CHECK(sys::readFile(*group + "/devices.list").value_or("").find("10:237") ==
              std::string::npos);
    }
    // The image itself is unchanged.
    const std::string tree = treeOf(host);
    REQUIRE(fs::exists(tree + "/bin/sh"));
    CHECK_FALSE(fs::exists(tree + "/opt/gpu"));
    CHECK_FALSE(fs::exists(tree + "/usr/lib/gpu"));
    CHECK_FALSE(fs::exists(tree + "/etc/ld.so.cache"));
    host.runtime().destroy(with);
    host.runtime().destroy(without);
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: a GPU that no CDI file names, and a hook that fails, leave nothing behind",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    const StandIn driver(host);
    const std::string unknown = "GPU-00000000-0000-0000-0000-000000000000";
    const std::string said = failure(host, {kGpu, unknown});
    CHECK(said.find("no CDI file names the device nvidia.com/gpu=" + unknown) == 0);
    CHECK(said.find("gpu.json (4 of kind nvidia.com/gpu)") != std::string::npos);
    CHECK(driver.trace().empty());
    CHECK(host.leftovers().empty());

    CHECK(failure(host, {kGpu, kBroken}).find("created") == std::string::npos);
    CHECK(driver.trace() == "made 0 none\nended 0 none\n");
    CHECK(host.leftovers().empty());

    // A link of the image must not lead a mount to a place where the tenant writes.
    CHECK(failure(host, {kAstray}).find("/astray/lib.so: it leads into /workspace") !=
          std::string::npos);
    CHECK(host.leftovers().empty());

    // Another user could write there what root executes.
    const std::string file = host.names().dataDir() + "/cdi/gpu.json";
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
    CHECK(failure(host, {kGpu}).find("others than its owner may write to it") != std::string::npos);
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    REQUIRE(::chmod((host.names().dataDir() + "/driver/trace").c_str(), 0777) == 0);
    CHECK(failure(host, {kGpu}).find("may be written to by others") != std::string::npos);
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: a sandbox with a GPU outlives its launcher, and ends with its hooks", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const StandIn driver(host);
    const SandboxId id = createWith(host, {kGpu, kMig});
    host.kill();
    host.start();
    CHECK(SmallAgent(host.runtime().connect(id)).run("cat /opt/gpu/share/model").output == "model");
    host.runtime().sweep({});
    CHECK(driver.trace() == "made 0 none\nended 0 none\n");
    CHECK(host.leftovers().empty());
}

TEST_CASE("oci: a launcher killed while it makes a sandbox with a GPU leaves nothing after a sweep",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    const StandIn driver(host);
    for (int delay = 5; delay < 200; delay += 23) {
        const pid_t launcher = host.launcherPid();
        {
            std::jthread creator([&] { failure(host, {kGpu, kMig}); });
            std::this_thread::sleep_for(std::chrono::milliseconds(delay));
            ::kill(launcher, SIGKILL);
        }
        host.stop();
        host.start();
        host.runtime().sweep({});
        const auto left = host.leftovers();
        INFO("after " << delay << " ms: " << (left.empty() ? "" : left.front()));
        REQUIRE(left.empty());
    }
}

TEST_CASE("oci: the hooks of NVIDIA's own toolkit work in a sandbox", "[kernel]") {
    if (!canRun()) return;
    std::string program = environment("HEARTH_NVIDIA_CDI_HOOK");
    if (program.empty()) program = "/usr/bin/nvidia-cdi-hook";
    if (!fs::exists(program)) {
        // Debian lacks the program, so a required stage may leave this test out.
        std::cout << "left out: the hooks of NVIDIA's toolkit; HEARTH_NVIDIA_CDI_HOOK names its "
                     "nvidia-cdi-hook"
                  << std::endl;
        return;
    }
    Host host;
    const std::string data = host.names().dataDir();
    for (const char* folder : {"/cdi", "/driver"}) sys::makeDirectory(data + folder, 0755);
    // The image gets a loader's cache, like all images that use one.
    sys::writeFile(treeOf(host) + "/etc/ld.so.cache", "", 0644);
    // A real library, so that the loader's cache lists it.
    fs::copy_file("/lib/x86_64-linux-gnu/libz.so.1", data + "/driver/libcuda.so.1.2");
    fs::copy_file(program, data + "/driver/hook");
    const auto hook = [&](std::vector<std::string> args) {
        args.insert(args.begin(), "nvidia-cdi-hook");
        return Json{
            {"hookName", "createContainer"}, {"path", data + "/driver/hook"}, {"args", args}};
    };
    const std::string folder = "/usr/lib/gpu";
    const Json edits{
        {"deviceNodes", Json::array({{{"path", "/dev/dri/card1"}, {"hostPath", "/dev/zero"}}})},
        {"mounts", Json::array({{{"hostPath", data + "/driver/libcuda.so.1.2"},
                                 {"containerPath", folder + "/libcuda.so.1.2"},
                                 {"options", Json::array({"ro", "nosuid", "nodev", "bind"})}}})},
        {"hooks", Json::array({hook({"create-symlinks", "--link",
                                     "libcuda.so.1.2::" + folder + "/libcuda.so", "--link",
                                     "../card1::/dev/dri/by-path/pci-0000:07:00.0-card"}),
                               hook({"chmod", "--mode", "755", "--path", "/dev/dri"}),
                               hook({"update-ldcache", "--folder", folder})})}};
    sys::writeFile(
        data + "/cdi/gpu.json",
        dumpJson({{"cdiVersion", "0.6.0"},
                  {"kind", "nvidia.com/gpu"},
                  {"devices", Json::array({{{"name", kGpu}, {"containerEdits", edits}}})}}),
        0644);
    const SandboxId id = createWith(host, {kGpu});
    SmallAgent agent(host.runtime().connect(id));
    CHECK(agent.run("readlink " + folder + "/libcuda.so").output == "libcuda.so.1.2\n");
    CHECK(agent.run("readlink /dev/dri/by-path/pci-0000:07:00.0-card").output == "../card1\n");
    CHECK(agent.run("grep -c " + folder + " /etc/ld.so.cache").output == "1\n");
    host.runtime().destroy(id);
    CHECK(host.leftovers().empty());
}

}  // namespace hearth::kernel_test
