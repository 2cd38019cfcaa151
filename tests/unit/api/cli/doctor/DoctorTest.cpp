#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/cli/doctor/CdiChecks.h"
#include "api/cli/doctor/HostChecks.h"
#include "api/cli/doctor/StateChecks.h"
#include "api/cli/doctor/ToolChecks.h"
#include "api/serve/OfflineState.h"

using namespace hearth::cli;

namespace {

/// Made-up files of /proc and /sys.
class FakeHost {
public:
    FakeHost() {
        std::string name =
            (std::filesystem::temp_directory_path() / "hearth-doctor-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        root_ = name;
    }
    ~FakeHost() {
        std::error_code error;
        std::filesystem::remove_all(root_, error);
    }
    FakeHost(const FakeHost&) = delete;
    FakeHost& operator=(const FakeHost&) = delete;
    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text << '\n';
    }
    HostChecks checks() const { return HostChecks(root_); }
    const std::string& root() const { return root_; }

private:
    std::string root_;
};

const Finding* find(const Findings& findings, const std::string& name) {
    const auto it = std::ranges::find(findings, name, &Finding::name);
    return it == findings.end() ? nullptr : &*it;
}

}  // namespace

TEST_CASE("doctor recognizes cgroup layouts and names missing controllers", "[unit][cli]") {
    const FakeHost v2;
    v2.write("/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw");
    v2.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids");
    CHECK(v2.checks().cgroups().level == Level::Ok);
    CHECK(v2.checks().cgroups().message.starts_with("v2"));
    v2.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io");
    CHECK(v2.checks().cgroups().level == Level::Fail);
    CHECK(v2.checks().cgroups().message == "v2 without memory, pids");

    const FakeHost hybrid;
    hybrid.write("/proc/self/mountinfo",
                 "1 2 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                 "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                 "1 2 0:1 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
                 "1 2 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct");
    hybrid.write("/sys/fs/cgroup/unified/cgroup.controllers", "");
    CHECK(hybrid.checks().cgroups().message == "hybrid with memory, pids, cpu");

    const FakeHost none;
    CHECK(none.checks().cgroups().level == Level::Fail);
    CHECK_FALSE(none.checks().cgroups().fix.empty());
}

TEST_CASE("an old kernel and closed user namespaces fail with a fix", "[unit][cli]") {
    const FakeHost host;
    host.write("/proc/sys/kernel/osrelease", "4.19.0");
    host.write("/proc/self/ns/user", "");
    host.write("/proc/sys/user/max_user_namespaces", "0");
    CHECK(host.checks().kernel().level == Level::Fail);
    CHECK(host.checks().userNamespaces().fix.starts_with("sysctl -w user.max_user_namespaces"));
    host.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    CHECK(host.checks().kernel().level == Level::Ok);
}

TEST_CASE("doctor warns of the effects of a missing CAP_SYS_RESOURCE", "[unit][cli]") {
    const FakeHost host;
    host.write("/proc/self/status", "Name:\thearth\nCapBnd:\t000001fffeffffff\nCapAmb:\t0");
    CHECK(host.checks().oomScores().level == Level::Warn);
    CHECK(host.checks().oomScores().message.find("oom_score_adj") != std::string::npos);
    CHECK_FALSE(host.checks().oomScores().fix.empty());
    host.write("/proc/self/status", "Name:\thearth\nCapBnd:\t000001ffffffffff\nCapAmb:\t0");
    CHECK(host.checks().oomScores().level == Level::Ok);
}

TEST_CASE("doctor reports the machine's limit of open files", "[unit][cli]") {
    const FakeHost host;
    CHECK(host.checks().openFiles().level == Level::Ok);
    host.write("/proc/sys/fs/file-nr", "948\t0\t2466177");
    CHECK(host.checks().openFiles().level == Level::Ok);
    CHECK(host.checks().openFiles().message == "948 of the machine's 2466177");
    host.write("/proc/sys/fs/file-nr", "700000\t0\t2466177");
    CHECK(host.checks().openFiles().level == Level::Warn);
    CHECK(host.checks().openFiles().fix == "sysctl -w fs.file-max=4932354");
    host.write("/proc/sys/fs/file-nr", "948\t0\t100000");
    CHECK(host.checks().openFiles().level == Level::Warn);
    CHECK(host.checks().openFiles().fix == "sysctl -w fs.file-max=500000");
}

TEST_CASE("weak settings of the host are warnings with the command that fixes them",
          "[unit][cli]") {
    const FakeHost host;
    host.write("/proc/sys/fs/protected_symlinks", "0");
    host.write("/proc/sys/kernel/kptr_restrict", "2");
    host.write("/proc/sys/kernel/core_pattern", "|/usr/lib/crash %p");
    host.write("/proc/swaps", "Filename Type\n/dev/sda2 partition");
    const Findings findings = host.checks().gates();
    REQUIRE(find(findings, "fs.protected_symlinks") != nullptr);
    CHECK(find(findings, "fs.protected_symlinks")->level == Level::Warn);
    CHECK(find(findings, "fs.protected_symlinks")->fix == "sysctl -w fs.protected_symlinks=1");
    CHECK(find(findings, "kernel.kptr_restrict")->level == Level::Ok);
    CHECK(find(findings, "kernel.core_pattern") != nullptr);
    CHECK(find(findings, "swap") != nullptr);
    CHECK(std::ranges::none_of(findings, [](const Finding& f) { return f.level == Level::Fail; }));
}

TEST_CASE("/run is judged by the mount that holds it", "[unit][cli]") {
    const FakeHost host;
    host.write("/proc/self/mountinfo",
               "1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /run rw - tmpfs tmpfs rw\n"
               "3 2 0:3 / /run/lock rw - ext4 /dev/sdb rw");
    CHECK(host.checks().runTmpfs().level == Level::Ok);
    host.write("/proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/sda rw");
    CHECK(host.checks().runTmpfs().level == Level::Warn);
}

TEST_CASE("runc is judged by its version", "[unit][cli]") {
    CHECK(judgeRunc("runc version 1.1.5").level == Level::Fail);
    CHECK(judgeRunc("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1").level == Level::Fail);
    const Finding debian = judgeRunc("runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n");
    CHECK(debian.level == Level::Warn);
    CHECK(debian.message.find("CVE-2024-45310") != std::string::npos);  // as the capabilities say
    CHECK(judgeRunc("runc version 1.1.15").level == Level::Warn);
    CHECK(judgeRunc("runc version 1.2.7").level == Level::Warn);
    CHECK(judgeRunc("runc version 1.3.2").level == Level::Warn);
    CHECK(judgeRunc("runc version 1.4.0").level == Level::Warn);
    CHECK(judgeRunc("runc version 1.4.3").level == Level::Ok);
    CHECK(judgeRunc("runc version 2.0.0").level == Level::Ok);
    CHECK(judgeRunc("runc what").level == Level::Warn);
}

TEST_CASE("doctor reports kept damaged databases, and nothing for an unused directory",
          "[unit][cli]") {
    const FakeHost host;
    ServeConfig config;
    config.data_dir = {host.root()};
    CHECK(checkState(config).empty());
    host.write("/state/key", "a key");
    CHECK(find(checkState(config), "database")->message.find("is missing") != std::string::npos);
    host.write("/state/hearth.db.damaged-17", "x");
    host.write("/state/hearth.db.damaged-17-wal", "x");
    const Findings kept = checkState(config);
    CHECK(find(kept, "database")->level == Level::Warn);
    CHECK(find(kept, "database")->message.ends_with(": hearth.db.damaged-17"));
    CHECK_FALSE(find(kept, "database")->fix.empty());
    host.write("/state/hearth.db", std::string(5000, 'x'));
    CHECK(find(checkState(config), "database")->level == Level::Fail);
    host.write("/state/hearth.db.suspect", "");
    CHECK(find(checkState(config), "database")->level == Level::Fail);
}

TEST_CASE("doctor reports an instance that lost its tokens", "[unit][cli]") {
    const FakeHost host;
    ServeConfig config;
    config.data_dir = {host.root()};
    host.write("/state/key", "a key");
    host.write("/state/had-tokens", "yes");
    { std::ofstream empty(host.root() + "/state/hearth.db"); }
    Findings findings = checkState(config);
    REQUIRE(find(findings, "tokens") != nullptr);
    CHECK(find(findings, "tokens")->level == Level::Fail);
    CHECK(find(findings, "tokens")->fix.starts_with("hearth token create --role admin --offline"));
    config.open_loopback = {true, hearth::cli::Source::Flag, "--open-loopback"};
    findings = checkState(config);
    CHECK(find(findings, "tokens")->level == Level::Warn);
    hearth::program::offlineTokens(host.root())
        ->create({"default", hearth::controller::Role::Admin, hearth::controller::kOwnerOfState},
                 "root", "default", hearth::controller::Role::Admin, {});
    CHECK(find(checkState(config), "tokens") == nullptr);
}

TEST_CASE("doctor lists the GPUs of CDI files, and the files that are refused", "[unit][cli]") {
    const FakeHost host;
    const hearth::pool::cdi::CdiFolders folders{{host.root() + "/cdi"}, ::geteuid()};
    const auto write = [&](const std::string& name, const std::string& text) {
        host.write("/cdi/" + name, text);
        using std::filesystem::perms;
        std::filesystem::permissions(host.root() + "/cdi", static_cast<perms>(0755));
        std::filesystem::permissions(host.root() + "/cdi/" + name, static_cast<perms>(0644));
    };
    const auto named = [](const std::string& name) {
        return R"({"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":")" + name +
               R"(","containerEdits":{"env":["A=1"]}}]})";
    };
    CHECK(checkCdi(folders).level == Level::Ok);
    CHECK(checkCdi(folders).message.starts_with("no files"));
    write("index.json", named("0"));
    CHECK(checkCdi(folders).level == Level::Warn);
    CHECK(checkCdi(folders).message == "0 GPUs are named by uuid");
    CHECK(checkCdi(folders).fix.find("--device-name-strategy=uuid") != std::string::npos);
    write("uuid.json", named("GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76"));
    CHECK(checkCdi(folders).level == Level::Ok);
    CHECK(checkCdi(folders).message ==
          "1 GPUs are named by uuid: GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76");
    write("broken.yaml", "kind: [");
    CHECK(checkCdi(folders).level == Level::Warn);
    CHECK(checkCdi(folders).message.find("/cdi/broken.yaml is refused: line ") !=
          std::string::npos);
}

TEST_CASE("doctor reports that the server of HEARTH_URL does not answer", "[unit][cli]") {
    const Finding closed = checkClientUrl("http://127.0.0.1:1", "");
    CHECK(closed.level == Level::Warn);
    CHECK(closed.name == "HEARTH_URL");
    CHECK(closed.message.find("127.0.0.1:1") != std::string::npos);
    const Finding wrong = checkClientUrl("ftp://127.0.0.1", "");
    CHECK(wrong.level == Level::Warn);
    CHECK_FALSE(wrong.message.empty());
    CHECK(checkClientUrl("https://127.0.0.1:1", "/no/such/file").message.find("/no/such/file") !=
          std::string::npos);
}
