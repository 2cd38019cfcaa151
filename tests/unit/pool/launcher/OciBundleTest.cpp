#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/isolation/RuntimeAdvisories.h"
#include "pool/isolation/SandboxIdentity.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/launcher/HostFacts.h"
#include "pool/launcher/OciBundle.h"
#include "pool/launcher/UidLeases.h"

namespace hearth::pool::launcher {
namespace {

const Instance kInstance{"0123456789ab", "/var/lib/hearth", "/run/hearth/0123456789ab"};

Json config(Storage storage) {
    SandboxSpec spec;
    spec.limits.milli_cpu = 1500;
    spec.storage = storage;
    BundlePlaces places{newId("sb_"), "/data/rootfs/x",       "/data/inside/y", "/run/dev",
                        "/run/mnt",   "/hearth-i/hearth-i-x", 265'536};
    return bundleConfig(spec, places);
}

const Json* mountAt(const Json& config, const std::string& where) {
    for (const Json& mount : config.at("mounts")) {
        if (mount.at("destination") == where) return &mount;
    }
    return nullptr;
}

bool hasOption(const Json& mount, const std::string& option) {
    for (const Json& o : mount.at("options")) {
        if (o == option) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a bundle isolates its sandbox", "[unit][launcher]") {
    const Json json = config(Storage::Disk);
    CHECK(json.at("process").at("noNewPrivileges") == true);
    CHECK(json.at("process").at("capabilities").at("bounding") ==
          Json::array({"CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SETPCAP"}));
    CHECK(json.at("process").at("capabilities").at("inheritable").empty());
    CHECK(json.at("process").at("capabilities").at("ambient").empty());
    CHECK(json.at("process").at("user").at("umask") == 077);
    CHECK(json.at("process").at("oomScoreAdj") == 900);
    CHECK(json.at("root").at("readonly") == true);
    std::set<std::string> namespaces;
    for (const Json& item : json.at("linux").at("namespaces")) {
        namespaces.insert(item.at("type").get<std::string>());
        CHECK_FALSE(item.contains("path"));
    }
    CHECK(namespaces ==
          std::set<std::string>{"pid", "network", "ipc", "uts", "mount", "cgroup", "user"});
    CHECK(json.at("linux").at("uidMappings").at(0).at("hostID") == 265'536);
    CHECK(json.at("linux").at("uidMappings").at(0).at("size") == 65'536);
    CHECK(json.at("linux").at("gidMappings") == json.at("linux").at("uidMappings"));
    CHECK(mountAt(json, "/sys")->at("type") == "tmpfs");
    CHECK(mountAt(json, "/sys/fs/cgroup")->at("type") == "cgroup");
    for (const char* where : {"/sys", "/sys/fs/cgroup"}) {
        for (const char* option : {"ro", "nosuid", "noexec", "nodev"}) {
            INFO(where << " " << option);
            CHECK(hasOption(*mountAt(json, where), option));
        }
    }
    CHECK(hasOption(*mountAt(json, "/.hearth"), "ro"));
    CHECK(hasOption(*mountAt(json, "/.hearth/run"), "mode=0755"));
    CHECK_FALSE(hasOption(*mountAt(json, "/.hearth/run"), "noexec"));
    CHECK(hasOption(*mountAt(json, "/dev/pts"), "newinstance"));
    CHECK(mountAt(json, "/dev")->at("source") == "/run/dev");
    CHECK(hasOption(*mountAt(json, "/dev"), "ro"));
    for (const Json& mount : json.at("mounts")) {
        INFO(mount.dump());
        CHECK(hasOption(mount, "nosuid"));
        const bool tmpfs = mount.at("type") == "tmpfs";
        bool bounded = false;
        for (const Json& option : mount.at("options")) {
            bounded = bounded || option.get<std::string>().starts_with("nr_inodes=");
        }
        CHECK(tmpfs == bounded);
    }
}

TEST_CASE("a bundle carries the limits of the spec", "[unit][launcher]") {
    const Json json = config(Storage::Memory);
    const Json& resources = json.at("linux").at("resources");
    CHECK(resources.at("memory").at("limit") == resources.at("memory").at("swap"));
    CHECK(resources.at("memory").at("limit") == 512U << 20U);
    CHECK(resources.at("cpu").at("quota") == 150'000);
    CHECK(resources.at("pids").at("limit") == 128);
    CHECK(resources.at("devices").at(0).at("allow") == false);
    CHECK_FALSE(resources.at("devices").at(0).contains("type"));
    for (const Json& rule : resources.at("devices")) CHECK(rule.value("type", "c") == "c");
    CHECK(json.at("process").at("env").at(2) == "HEARTH_CPUS=2");
    CHECK(hasOption(*mountAt(json, "/workspace"), "size=268435456"));
    CHECK(hasOption(*mountAt(json, "/workspace"), "uid=1000"));
    CHECK(hasOption(*mountAt(json, "/dev/shm"), "size=67108864"));
    CHECK(hasOption(*mountAt(json, "/.hearth/run"), "size=67108864"));
    CHECK(json.at("process").at("rlimits").at(0) ==
          Json{{"type", "RLIMIT_NOFILE"}, {"hard", 65'536}, {"soft", 1'024}});
    CHECK(mountAt(config(Storage::Disk), "/workspace")->at("type") == "bind");
}

TEST_CASE("the names of a sandbox contain its instance and its id", "[unit][launcher]") {
    const SandboxPaths names(kInstance);
    const SandboxId id = "sb_00112233445566778899aabbccddeeff";
    CHECK(names.container(id) == "hearth-0123456789ab-00112233445566778899aabbccddeeff");
    CHECK(names.idOf(names.container(id)) == id);
    CHECK_FALSE(names.idOf("hearth-ffffffffffff-00112233445566778899aabbccddeeff"));
    CHECK_FALSE(names.idOf("hearth-0123456789ab-../../etc"));
    CHECK_FALSE(names.idOf(""));
    CHECK(names.cgroup(id) == "/hearth-0123456789ab/" + names.container(id));
    CHECK(names.uidLeases() == "/run/hearth/uids");
}

TEST_CASE("a layer is mounted read-only, after all other mounts, and named to the agent",
          "[unit][launcher]") {
    CHECK(mountAt(config(Storage::Disk), kLayerPlace) == nullptr);
    BundlePlaces places;
    places.id = newId("sb_");
    places.layer = "/data/layers/.view";
    const Json made = bundleConfig({}, places);
    const Json* mount = mountAt(made, kLayerPlace);
    REQUIRE(mount != nullptr);
    CHECK(mount->at("source") == "/data/layers/.view");
    for (const char* option : {"ro", "nosuid", "nodev"}) CHECK(hasOption(*mount, option));
    CHECK(made.at("mounts").back() == *mount);
    const Json& env = made.at("process").at("env");
    CHECK(std::find(env.begin(), env.end(), "HEARTH_LAYER=/.hearth/layer/site-packages") !=
          env.end());
}

TEST_CASE("a bundle has the nodes, mounts, variables and hooks of its GPUs, and no other has",
          "[unit][launcher]") {
    SandboxSpec spec;
    spec.gpus = {"GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76"};
    BundlePlaces places;
    places.id = newId("sb_");
    places.gpu.nodes = {{"nvidia0", 195, 0, 0666, "rw"},
                        {"nvidia-caps/nvidia-cap1", 237, 1, 0400, "r"}};
    places.gpu.mounts = {{"/host/libcuda.so", "/usr/lib/libcuda.so"},
                         {"/host/cache", "/var/cache/gpu", true, false, true},
                         {"/host/share", "/usr/share/gpu", false, true, true}};
    places.gpu.env = {"NVIDIA_VISIBLE_DEVICES=void"};
    places.locked_bytes = 1U << 30U;
    const Json plain = bundleConfig(spec, places);
    CHECK(hasOption(*mountAt(plain, "/dev"), "ro"));
    CHECK_FALSE(plain.contains("hooks"));
    places.gpu.hooks = {
        {cdi::HookPoint::CreateContainer, "/usr/bin/hook", {"hook", "a"}, {}, 15},
        {cdi::HookPoint::CreateContainer, "/usr/bin/hook", {"hook", "b"}, {"A=1"}, 3},
        {cdi::HookPoint::Poststop, "/usr/bin/end", {"end"}, {}, std::nullopt}};
    const Json made = bundleConfig(spec, places);

    const Json& rules = made.at("linux").at("resources").at("devices");
    const Json none = config(Storage::Disk).at("linux").at("resources").at("devices");
    REQUIRE(rules.size() == none.size() + 2);
    for (std::size_t i = 0; i < none.size(); ++i) CHECK(rules.at(i) == none.at(i));
    CHECK(rules.at(rules.size() - 2) ==
          Json{{"allow", true}, {"type", "c"}, {"major", 195}, {"minor", 0}, {"access", "rw"}});
    CHECK(rules.back() ==
          Json{{"allow", true}, {"type", "c"}, {"major", 237}, {"minor", 1}, {"access", "r"}});

    const Json* file = mountAt(made, "/usr/lib/libcuda.so");
    REQUIRE(file != nullptr);
    CHECK(file->at("source") == "/host/libcuda.so");
    CHECK(file->at("options") == Json::array({"bind", "rprivate", "nosuid", "nodev", "ro"}));
    CHECK(mountAt(made, "/var/cache/gpu")->at("options") ==
          Json::array({"rbind", "rprivate", "nosuid", "nodev", "noexec"}));
    CHECK(mountAt(made, "/usr/share/gpu")->at("options") ==
          Json::array({"rbind", "rprivate", "nosuid", "nodev", "ro", "rro"}));
    // Hooks may add links to /dev until the launcher seals it.
    CHECK_FALSE(hasOption(*mountAt(made, "/dev"), "ro"));

    const Json& env = made.at("process").at("env");
    CHECK(env.back() == R"(HEARTH_GPU={"env":["NVIDIA_VISIBLE_DEVICES=void"]})");
    CHECK(std::none_of(env.begin(), env.end(), [](const Json& each) {
        return each.get_ref<const std::string&>().starts_with("NVIDIA_");
    }));
    for (const Json& limit : made.at("process").at("rlimits")) {
        if (limit.at("type") == "RLIMIT_MEMLOCK") CHECK(limit.at("hard") == 1U << 30U);
    }
    CHECK(made.at("hooks") == Json::parse(R"({
        "createContainer":[{"path":"/usr/bin/hook","args":["hook","a"],"env":[],"timeout":15},
                           {"path":"/usr/bin/hook","args":["hook","b"],"env":["A=1"],"timeout":3}],
        "poststop":[{"path":"/usr/bin/end","args":["end"],"env":[]}]})"));
    CHECK_FALSE(config(Storage::Disk).contains("hooks"));
}

TEST_CASE("only a sandbox with a MIG instance sees the driver in /proc, without the other GPUs",
          "[unit][launcher]") {
    const auto masks = [](const char* uuid, const char* path) {
        SandboxSpec spec;
        spec.gpus = {uuid};
        BundlePlaces places;
        places.id = newId("sb_");
        const Json paths = bundleConfig(spec, places).at("linux").at("maskedPaths");
        return std::find(paths.begin(), paths.end(), path) != paths.end();
    };
    CHECK(masks("GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76", "/proc/driver"));
    CHECK_FALSE(masks("MIG-a7d3f5b2-61c4-5d20-9f0e-2b8c7d1e4f36", "/proc/driver"));
    CHECK(masks("MIG-a7d3f5b2-61c4-5d20-9f0e-2b8c7d1e4f36", "/proc/driver/nvidia/gpus"));
}

TEST_CASE("no range of user ids is leased twice", "[unit][launcher]") {
    char path[] = "/tmp/hearth-leases-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    const UidLeases mine(path, "aaaaaaaaaaaa", 200'000, 8);
    const UidLeases other(path, "bbbbbbbbbbbb", 200'000, 8);
    std::set<std::uint32_t> ranges;
    std::vector<SandboxId> ids;
    for (int i = 0; i < 8; ++i) {
        ids.push_back(newId("sb_"));
        const std::uint32_t first = (i % 2 == 0 ? mine : other).lease(ids.back());
        CHECK(first >= 200'000);
        CHECK((first - 200'000) % kRangeSize == 0);
        ranges.insert(first);
    }
    CHECK(ranges.size() == 8);
    CHECK_THROWS_AS(mine.lease(newId("sb_")), Error);
    CHECK(mine.lease(ids[0]) == mine.lease(ids[0]));
    CHECK(mine.holders().size() == 4);
    mine.release(ids[1]);  // held by the other instance
    CHECK(other.holders().size() == 4);
    mine.release(ids[0]);
    mine.release(ids[0]);
    CHECK(mine.holders().size() == 3);
    CHECK_NOTHROW(other.lease(newId("sb_")));
    std::filesystem::remove_all(path);
}

TEST_CASE("a range is leased and given back without a look at all others", "[unit][launcher]") {
    char path[] = "/tmp/hearth-leases-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    const std::string directory = path;
    const UidLeases leases(directory, "aaaaaaaaaaaa", 200'000, 1000);
    std::vector<SandboxId> ids;
    for (int i = 0; i < 300; ++i) {
        ids.push_back(newId("sb_"));
        leases.lease(ids.back());
    }
    CHECK(leases.lease(ids[7]) == leases.lease(ids[7]));
    for (int i = 0; i < 100; ++i) leases.release(ids[static_cast<std::size_t>(i)]);
    leases.release(newId("sb_"));  // it never had a range
    CHECK_FALSE(leases.holds(ids[0]));
    CHECK(leases.holds(ids[100]));
    CHECK(leases.scans() == 0);
    CHECK(leases.holders().size() == 200);

    // A launcher that died between its note and its lease does not hold another one's range.
    const SandboxId half = newId("sb_");
    const std::uint32_t taken = (leases.lease(ids[100]) - 200'000) / kRangeSize;
    std::filesystem::create_symlink(std::to_string(taken), directory + "/aaaaaaaaaaaa." + half);
    leases.release(half);
    CHECK(leases.holders().size() == 200);
    CHECK_FALSE(leases.holds(half));

    for (const SandboxId& id : ids) leases.release(id);
    CHECK(std::filesystem::is_empty(directory));
    std::filesystem::remove_all(path);
}

TEST_CASE("the known holes of a runc follow from its version", "[unit][launcher]") {
    CHECK(knownHoles("runc version 1.1.5+ds1", "1.1.5+ds1-1+deb12u1").size() == 5);
    CHECK(knownHoles("runc version 1.1.5", "").size() == 6);
    CHECK(knownHoles("runc version 1.2.8", "") == std::vector<std::string>{"CVE-2026-41579"});
    CHECK(knownHoles("runc version 1.3.2", "").size() == 4);
    CHECK(knownHoles("runc version 1.4.3", "").empty());
    CHECK(knownHoles("runc version 1.5.0", "").empty());
    CHECK(knownHoles("runc version 1.5.0-rc.1", "") == std::vector<std::string>{"CVE-2026-41579"});
    CHECK(knownHoles("runc version 1.4.0-rc.1", "").size() == 4);
    CHECK(knownHoles("crun version 1.8.1", "").empty());
}

}  // namespace hearth::pool::launcher
