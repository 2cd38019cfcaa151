#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/Fd.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Host.h"
#include "tests/kernel/SmallAgent.h"

namespace hearth::kernel_test {
namespace {

using pool::SandboxId;

constexpr std::size_t kPage = 4096;

/// Makes a file of the image that every sandbox can read, clean and in the page cache.
std::string sharedFile(Host& host) {
    const std::string path =
        host.names().rootfs() + "/" + host.spec().image_digest.substr(7) + "/shared";
    sys::writeFile(path, std::string(16 * kPage, 'x'), 0644);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (::fsync(fd.get()) != 0) throw std::runtime_error("fsync " + path);
    return path;
}

/// Returns whether the first page of a file is in memory, as root sees it.
bool inMemory(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    void* const map = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (map == MAP_FAILED) throw std::runtime_error("mmap " + path);
    unsigned char there = 0;
    const int result = ::mincore(map, kPage, &there);
    ::munmap(map, kPage);
    if (result != 0) throw std::runtime_error("mincore " + path);
    return (there & 1U) != 0;
}

std::string modules() {
    return sys::readFile("/proc/modules").value_or("");
}

}  // namespace

TEST_CASE("oci: no tenant sees what another opens of /.hearth, /dev or the image", "[kernel]") {
    if (!canRun()) return;
    Host host;
    sharedFile(host);
    const SandboxId spy = host.create();
    const SandboxId victim = host.create();
    SmallAgent watching(host.runtime().connect(spy));
    SmallAgent working(host.runtime().connect(victim));
    watching.start("exec probe spy > /workspace/seen");
    // Read from outside, because the spy also sees what its own sandbox starts.
    const auto told = [&] {
        return sys::readFile("/proc/" + std::to_string(host.initOf(spy)) + "/root" +
                             std::string("/workspace/seen"))
            .value_or("");
    };
    const auto await = [&](const std::string& word) {
        for (int i = 0; i < 400 && told().find(word) == std::string::npos; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(25));
        }
    };
    await("watching=0");
    for (const auto& [name, error] : pairs(working.run("probe use").output)) {
        INFO(name);
        CHECK(error == "0");
    }
    await("others=");
    INFO(told());
    auto seen = pairs(told());
    CHECK(std::stoi(seen["own"]) > 0);
    CHECK(seen["others"] == "0");
    host.runtime().destroy(spy);
    host.runtime().destroy(victim);
}

TEST_CASE("oci: a lock that one tenant holds on /.hearth, /dev or the image is no other's",
          "[kernel]") {
    if (!canRun()) return;
    Host host;
    sharedFile(host);
    const SandboxId holder = host.create();
    const SandboxId other = host.create();
    SmallAgent holding(host.runtime().connect(holder));
    SmallAgent trying(host.runtime().connect(other));
    holding.start("exec probe hold > /workspace/held");
    while (holding.run("cat /workspace/held").output.find("/shared=") == std::string::npos) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK(pairs(holding.run("cat /workspace/held").output)["/.hearth/agent"] == "0");
    for (const auto& [name, error] : pairs(trying.run("probe use").output)) {
        INFO(name);
        CHECK(error == "0");
    }
    host.runtime().destroy(holder);
    host.runtime().destroy(other);
}

TEST_CASE("oci: /dev has what programs expect, and nothing can be made in it", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    CHECK(agent.run("ls /dev | tr '\\n' ' '").output ==
          "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ");
    CHECK(agent.run("stat -c '%a %t:%T' /dev/null /dev/urandom").output == "666 1:3\n666 1:9\n");
    CHECK(agent.run("head -c 3 /dev/zero | wc -c; echo x > /dev/null; echo y > /dev/full")
              .output.find("3\n") == 0);
    CHECK(agent.run("echo in | cat /dev/stdin").output == "in\n");
    CHECK(
        agent.run("touch /dev/x 2>/dev/null; rm -f /dev/null; ls /dev/x 2>/dev/null").exitCode() !=
        0);
    CHECK(agent.run("test -c /dev/null && cat /proc/kallsyms | wc -c").output == "0\n");
    host.runtime().destroy(id);
}

TEST_CASE("a tenant evicts no page of a shared file, and is not told which are there",
          "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const std::string shared = kind() == Kind::Oci ? sharedFile(host) : "";
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    if (!shared.empty()) {
        REQUIRE(agent.run("cat /shared | wc -c").output == "65536\n");
        REQUIRE(inMemory(shared));
    }
    auto tried = pairs(agent.run("probe pages").output);
    for (const char* name : {"open", "evict", "pageout", "cold", "plain"}) {
        INFO(name);
        CHECK(tried[name] == "0");
    }
    CHECK(tried["nowait"] == "95");
    CHECK(tried["uncached"] == "95");
    CHECK(tried["cachestat"] == "38");
    if (!shared.empty()) CHECK(inMemory(shared));
    host.runtime().destroy(id);
}

TEST_CASE("oci: a sandbox counts until its disk is gone", "[kernel]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    agent.run("echo kept > /workspace/file");
    const std::string root = "/proc/" + std::to_string(host.initOf(id)) + "/root";
    Fd held(::open((root + "/workspace/file").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(held);
    CHECK_THROWS_WITH(host.runtime().destroy(id), Catch::Contains("still in use"));
    const auto left = host.runtime().list();
    REQUIRE(left.size() == 1);
    CHECK(left.front().id == id);
    CHECK_FALSE(left.front().alive);
    held.reset();
    host.runtime().destroy(id);
    CHECK(host.runtime().list().empty());
    CHECK(host.leftovers().empty());
}

TEST_CASE("sockets are TCP and UDP, and no request loads a module of the host",
          "[kernel][docker]") {
    if (!canRun()) return;
    Host host;
    const SandboxId id = host.create();
    SmallAgent agent(host.runtime().connect(id));
    const std::string before = modules();
    auto tried = pairs(agent.run("probe sockets").output);
    for (const char* version : {"4", "6"}) {
        for (const char* name : {"tcp", "udp"}) {
            INFO(name << version);
            CHECK((tried[std::string(name) + version] == "0" ||
                   tried[std::string(name) + version] == "97"));  // a kernel without IPv6
        }
        for (const char* name :
             {"ping", "sctp", "sctp_stream", "dccp", "udplite", "l2tp", "mptcp", "packets"}) {
            INFO(name << version);
            CHECK(tried[std::string(name) + version] == "1");
        }
    }
    for (const char* request : {"8940", "8941", "8980", "8981", "8982", "8983", "89a0", "89a1"}) {
        INFO(request);
        CHECK(tried[std::string("ioctl_") + request] == "1");
    }
    CHECK(modules() == before);
    host.runtime().destroy(id);
}

}  // namespace hearth::kernel_test
