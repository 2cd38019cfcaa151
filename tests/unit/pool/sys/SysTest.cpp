#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/Fd.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/CpuWeight.h"
#include "pool/sys/Files.h"
#include "pool/sys/Freezer.h"
#include "pool/sys/MemoryPeak.h"
#include "pool/sys/Process.h"

namespace hearth::sys {
namespace {

namespace fs = std::filesystem;

/// A separate directory, removed at the end.
class Scratch {
public:
    Scratch() {
        char path[] = "/tmp/hearth-sys-XXXXXX";
        REQUIRE(::mkdtemp(path) != nullptr);
        path_ = path;
    }
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

constexpr const char* kHybrid =
    "30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

}  // namespace

TEST_CASE("a file is read up to its limit and a missing one is no error", "[unit][sys]") {
    const Scratch scratch;
    writeFile(scratch / "a", "hello", 0640);
    CHECK(readFile(scratch / "a") == "hello");
    CHECK(readFile(scratch / "a", 2) == "he");
    CHECK_FALSE(readFile(scratch / "b"));
    CHECK_FALSE(readFile("/proc/999999999/stat"));
    struct stat status {};
    REQUIRE(::stat((scratch / "a").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0640);
}

TEST_CASE("a file is never written through a link", "[unit][sys]") {
    const Scratch scratch;
    writeFile(scratch / "target", "old", 0600);
    fs::create_symlink(scratch / "target", scratch / "link");
    CHECK_THROWS_AS(writeFile(scratch / "link", "new", 0600), std::system_error);
    CHECK(readFile(scratch / "target") == "old");
    CHECK_THROWS_AS(ensureDirectory(scratch / "link", 0700, ::getuid(), ::getgid()),
                    std::system_error);
}

TEST_CASE("a tree is removed without following its links", "[unit][sys]") {
    const Scratch scratch;
    writeFile(scratch / "keep", "x", 0600);
    fs::create_directories(scratch / "tree/a/b/c");
    fs::create_directories(scratch / "tree/d");
    writeFile(scratch / "tree/a/b/file", "x", 0600);
    fs::create_symlink(scratch / "keep", scratch / "tree/a/link");
    fs::create_directory_symlink(scratch / "", scratch / "tree/up");
    removeTree(scratch / "tree");
    CHECK_FALSE(fs::exists(scratch / "tree"));
    CHECK(readFile(scratch / "keep") == "x");
    CHECK_NOTHROW(removeTree(scratch / "tree"));
}

TEST_CASE("a tree deeper than there are descriptors is removed", "[unit][sys]") {
    const Scratch scratch;
    REQUIRE(::mkdir((scratch / "tree").c_str(), 0700) == 0);
    Fd at(::open((scratch / "tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < 3000; ++i) {
        REQUIRE(::mkdirat(at.get(), "d", 0700) == 0);
        at = Fd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(at);
    }
    at.reset();
    removeTree(scratch / "tree");
    CHECK_FALSE(fs::exists(scratch / "tree"));
}

TEST_CASE("a program runs with its given environment and descriptors only", "[unit][sys]") {
    const Scratch scratch;
    CHECK(run({{"true"}, -1, ""}) == 0);
    CHECK(run({{"sh", "-c", "exit 7"}, -1, ""}) == 7);
    CHECK(run({{"sh", "-c", "kill -9 $$"}, -1, ""}) == 128 + SIGKILL);
    CHECK(run({{"no-such-program-here"}, -1, ""}) == 127);
    const Fd leaked(::open("/dev/null", O_RDONLY));  // not close-on-exec
    REQUIRE(run({{"sh", "-c", "ls /proc/self/fd; env"}, -1, scratch / "out"}) == 0);
    const std::string out = readFile(scratch / "out").value_or("");
    CHECK(out.starts_with("0\n1\n2\n3\n"));  // 3 is the directory that ls reads
    CHECK(out.find("\n4\n") == std::string::npos);
    CHECK(out.find("LC_ALL=C") != std::string::npos);
    CHECK(out.find("USER=") == std::string::npos);
}

TEST_CASE("a passed descriptor becomes number three", "[unit][sys]") {
    const Scratch scratch;
    writeFile(scratch / "in", "through", 0600);
    const Fd in(::open((scratch / "in").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(run({{"sh", "-c", "cat <&3"}, in.get(), scratch / "out"}) == 0);
    CHECK(readFile(scratch / "out") == "through");
}

TEST_CASE("a process is known by its start and held by a descriptor", "[unit][sys]") {
    const auto own = processStartTime(::getpid());
    REQUIRE(own);
    CHECK(*own > 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (;;) ::pause();
    }
    const auto process = Process::open(child);
    REQUIRE(process);
    CHECK_FALSE(process->waitEnd(std::chrono::milliseconds(0)));
    process->kill();
    CHECK(process->waitEnd(std::chrono::seconds(10)));
    CHECK_FALSE(processStartTime(child));  // a zombie
    process->kill();                       // ended already: fine
    ::waitpid(child, nullptr, 0);
    CHECK_FALSE(Process::open(child));
}

TEST_CASE("control groups of a hybrid machine are version one", "[unit][sys]") {
    const Cgroups cgroups = Cgroups::parse(kHybrid);
    CHECK(cgroups.version() == CgroupVersion::V1);
    CHECK(cgroups.trees().size() == 4);
    CHECK(cgroups.directory("cpuacct", "/a/b") == "/sys/fs/cgroup/cpu,cpuacct/a/b");
    CHECK(cgroups.directory("memory", "/a") == "/sys/fs/cgroup/memory/a");
    CHECK_FALSE(cgroups.directory("pids", "/a"));
}

TEST_CASE("one unified tree is version two, and no tree is no version", "[unit][sys]") {
    const Cgroups cgroups =
        Cgroups::parse("33 24 0:29 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    CHECK(cgroups.version() == CgroupVersion::V2);
    CHECK(cgroups.directory("memory", "/a") == "/sys/fs/cgroup/a");
    CHECK(Cgroups::parse("").version() == CgroupVersion::None);
}

TEST_CASE("the peak of memory is taken from either version, and a new count begun", "[unit][sys]") {
    const Scratch scratch;
    fs::create_directories(scratch / "g");
    const auto tree = [&](const std::string& type, const std::string& options) {
        return Cgroups::parse("33 24 0:29 / " + (scratch / "") + " rw - " + type + " " + type +
                              " " + options + "\n");
    };
    for (const auto& [cgroups, file] :
         {std::pair{tree("cgroup2", "rw"), scratch / "g/memory.peak"},
          {tree("cgroup", "rw,memory"), scratch / "g/memory.memsw.max_usage_in_bytes"}}) {
        INFO(file);
        CHECK_FALSE(MemoryPeak(cgroups, "g").take());  // a kernel without it
        writeFile(file, "8192\n", 0400);
        CHECK_FALSE(MemoryPeak(cgroups, "g").take());  // one that begins no counts
        fs::remove(file);
        writeFile(file, "8192\n", 0600);
        MemoryPeak peak(cgroups, "g");
        CHECK(peak.take() == 8192);
        CHECK(readFile(file) == "0192\n");  // what was written begins the new count
    }
    CHECK_FALSE(MemoryPeak(Cgroups(), "g").take());
}

TEST_CASE("a process's open files are its descriptors and its mappings", "[unit][sys]") {
    const std::uint64_t before = openFiles(::getpid());
    CHECK(before > 3);
    const Scratch scratch;
    writeFile(scratch / "file", std::string(4096, 'x'), 0600);
    std::vector<Fd> open;
    for (int i = 0; i < 100; ++i) {
        open.emplace_back(::open((scratch / "file").c_str(), O_RDONLY | O_CLOEXEC));
    }
    CHECK(openFiles(::getpid()) == before + 100);
    void* const mapping = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, open[0].get(), 0);
    REQUIRE(mapping != MAP_FAILED);
    open.clear();
    CHECK(openFiles(::getpid()) == before + 1);
    ::munmap(mapping, 4096);
    CHECK(openFiles(0x7FFFFFF0) == 0);
}

TEST_CASE("usage is read from either version", "[unit][sys]") {
    const Scratch scratch;
    fs::create_directories(scratch / "g");
    const auto tree = [&](const std::string& type, const std::string& options) {
        return "33 24 0:29 / " + (scratch / "") + " rw - " + type + " " + type + " " + options +
               "\n";
    };
    writeFile(scratch / "g/pids.current", "5\n", 0600);
    writeFile(scratch / "g/cpu.stat", "usage_usec 1500\nuser_usec 1\n", 0600);
    writeFile(scratch / "g/memory.current", "4096\n", 0600);
    writeFile(scratch / "g/memory.peak", "8192\n", 0600);
    writeFile(scratch / "g/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n", 0600);
    const auto v2 = readUsage(Cgroups::parse(tree("cgroup2", "rw")), "g");
    REQUIRE(v2);
    CHECK(v2->cpu_ns == 1'500'000);
    CHECK(v2->memory_bytes == 4096);
    CHECK(v2->memory_peak_bytes == 8192);
    CHECK(v2->processes == 5);
    CHECK(v2->oom_kills == 2);

    writeFile(scratch / "g/cpuacct.usage", "77\n", 0600);
    writeFile(scratch / "g/memory.usage_in_bytes", "100\n", 0600);
    writeFile(scratch / "g/memory.max_usage_in_bytes", "200\n", 0600);
    writeFile(scratch / "g/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
              0600);
    const Cgroups all = Cgroups::parse(tree("cgroup", "rw,cpuacct,memory,pids"));
    const auto v1 = readUsage(all, "g");
    REQUIRE(v1);
    CHECK(v1->cpu_ns == 77);
    CHECK(v1->memory_bytes == 100);
    CHECK(v1->memory_peak_bytes == 200);
    CHECK(v1->oom_kills == 1);
    CHECK_FALSE(readUsage(all, "gone"));
}

namespace {

/// Returns control groups of one kind, whose files are in a folder of the test.
Cgroups tree(const Scratch& scratch, const std::string& type, const std::string& options) {
    return Cgroups::parse("33 24 0:29 / " + (scratch / "") + " rw - " + type + " " + type + " " +
                          options + "\n");
}

}  // namespace

TEST_CASE("a group's weight is set in either version, and a failure is reported", "[unit][sys]") {
    const Scratch scratch;
    fs::create_directories(scratch / "g");
    const auto told = [&](const char* file) { return readFile(scratch / file).value_or(""); };
    writeFile(scratch / "g/cpu.shares", "1024\n", 0600);
    const CpuWeightFile v1(tree(scratch, "cgroup", "rw,cpu"), "g");
    v1.handTo(::getuid());
    CHECK(told("g/cpu.shares").substr(0, 3) == "128");
    CHECK(v1.set(CpuWeight::First));
    CHECK(told("g/cpu.shares") == "4096");
    CHECK(v1.set(CpuWeight::Ordinary));
    CHECK(told("g/cpu.shares") == "128");

    writeFile(scratch / "g/cpu.weight", "100\n", 0600);
    const CpuWeightFile v2(tree(scratch, "cgroup2", "rw"), "g");
    CHECK(v2.set(CpuWeight::First));
    CHECK(told("g/cpu.weight") == "384");
    CHECK(v2.set(CpuWeight::Ordinary));
    CHECK(told("g/cpu.weight") == "12");

    fs::remove(scratch / "g/cpu.weight");
    fs::create_directories(scratch / "g/cpu.weight");
    CHECK_FALSE(v2.set(CpuWeight::First));
    fs::remove_all(scratch / "g");
    CHECK(v1.set(CpuWeight::First));  // the group has gone
    CHECK(v2.set(CpuWeight::First));
    CHECK(CpuWeightFile(tree(scratch, "cgroup", "rw,memory"), "g").set(CpuWeight::First));
}

TEST_CASE("a group is frozen and thawed in either version", "[unit][sys]") {
    const Scratch scratch;
    fs::create_directories(scratch / "g");
    const auto told = [&](const char* file) { return readFile(scratch / file).value_or(""); };
    constexpr auto kSoon = std::chrono::milliseconds(20);
    CHECK_FALSE(Freezer::exists(tree(scratch, "cgroup", "rw,memory")));
    CHECK_FALSE(Freezer(tree(scratch, "cgroup", "rw,memory"), "g").freeze(kSoon));
    CHECK(Freezer(tree(scratch, "cgroup", "rw,memory"), "g").thaw());

    writeFile(scratch / "g/freezer.state", "THAWED", 0600);
    const Freezer v1(tree(scratch, "cgroup", "rw,freezer"), "g");
    v1.handTo(::getuid());
    CHECK_FALSE(v1.frozen());
    CHECK(v1.freeze(kSoon));
    CHECK(told("g/freezer.state") == "FROZEN");
    CHECK(v1.frozen());
    CHECK(v1.thaw());
    CHECK(told("g/freezer.state") == "THAWED");

    // A kernel that has not stopped all of them yet says so in a file of its own.
    writeFile(scratch / "g/cgroup.freeze", "0", 0600);
    writeFile(scratch / "g/cgroup.events", "populated 1\nfrozen 0\n", 0600);
    const Freezer v2(tree(scratch, "cgroup2", "rw"), "g");
    CHECK(Freezer::exists(tree(scratch, "cgroup2", "rw")));
    CHECK_FALSE(v2.freeze(kSoon));
    CHECK(told("g/cgroup.freeze") == "0");
    writeFile(scratch / "g/cgroup.events", "populated 1\nfrozen 1\n", 0600);
    CHECK(v2.freeze(kSoon));
    CHECK(told("g/cgroup.freeze") == "1");
    CHECK(v2.thaw());
    CHECK(told("g/cgroup.freeze") == "0");
    fs::remove_all(scratch / "g");
    CHECK_FALSE(v1.freeze(kSoon));
    CHECK(v1.thaw());
}

}  // namespace hearth::sys
