#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "pool/isolation/SeccompTable.h"
#include "pool/isolation/TenantFilter.h"

namespace hearth::pool::launcher::seccomp {
namespace {

constexpr std::uint32_t kEperm = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kEnosys = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;

/// Returns the kernel's answer: an interpreter for the part of classic BPF that filters use.
std::uint32_t decide(const std::vector<sock_filter>& program, std::uint32_t nr,
                     std::array<std::uint64_t, 6> args, std::uint32_t arch) {
    seccomp_data data{};
    data.nr = static_cast<int>(nr);
    data.arch = arch;
    std::copy(args.begin(), args.end(), data.args);
    std::uint32_t a = 0;
    for (std::size_t pc = 0; pc < program.size(); ++pc) {
        const sock_filter& op = program[pc];
        const auto jump = [&](bool taken) { pc += taken ? op.jt : op.jf; };
        switch (op.code) {
            case BPF_LD | BPF_W | BPF_ABS:
                REQUIRE(op.k + 4 <= sizeof data);
                std::memcpy(&a, reinterpret_cast<const char*>(&data) + op.k, sizeof a);
                break;
            case BPF_ALU | BPF_AND | BPF_K:
                a &= op.k;
                break;
            case BPF_JMP | BPF_JA:
                pc += op.k;
                break;
            case BPF_JMP | BPF_JEQ | BPF_K:
                jump(a == op.k);
                break;
            case BPF_JMP | BPF_JGT | BPF_K:
                jump(a > op.k);
                break;
            case BPF_JMP | BPF_JGE | BPF_K:
                jump(a >= op.k);
                break;
            case BPF_JMP | BPF_JSET | BPF_K:
                jump((a & op.k) != 0);
                break;
            case BPF_RET | BPF_K:
                return op.k;
            default:
                FAIL("instruction " << op.code);
        }
    }
    FAIL("the program has no end");
    return 0;
}

std::uint32_t decide(std::uint32_t nr, std::array<std::uint64_t, 6> args = {},
                     std::uint32_t arch = AUDIT_ARCH_X86_64) {
    static const std::vector<sock_filter> program = tenantFilter();
    return decide(program, nr, args, arch);
}

int number(std::string_view name) {
    return ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, std::string(name).c_str());
}

}  // namespace

TEST_CASE("every name of the table is a system call of x86_64, and stands once",
          "[unit][launcher]") {
    std::vector<std::string_view> names;
    for (const auto list : {allowed(), notThere()}) {
        names.insert(names.end(), list.begin(), list.end());
    }
    for (const std::string_view name : names) {
        INFO(name);
        CHECK(number(name) >= 0);
    }
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    for (const Conditional& rule : conditional()) {
        INFO(rule.name);
        CHECK(std::count(names.begin(), names.end(), rule.name) == 0);
    }
}

TEST_CASE("tenant code may make the allowed calls and no others", "[unit][launcher]") {
    std::vector<std::uint32_t> open;
    for (const std::string_view name : allowed()) {
        open.push_back(static_cast<std::uint32_t>(number(name)));
        INFO(name);
        CHECK(decide(open.back()) == kAllow);
    }
    for (const std::string_view name : notThere()) {
        INFO(name);
        CHECK(decide(static_cast<std::uint32_t>(number(name))) == kEnosys);
    }
    for (const Conditional& rule : conditional()) {
        open.push_back(static_cast<std::uint32_t>(number(rule.name)));
    }
    for (std::uint32_t nr = 0; nr <= kNewestCall; ++nr) {
        if (std::count(open.begin(), open.end(), nr) > 0) continue;
        INFO("call " << nr);
        CHECK(decide(nr) != kAllow);
    }
    CHECK(decide(kNewestCall + 1) == kEnosys);
    CHECK(decide(462) == kEnosys);  // mseal
    CHECK(decide(9999) == kEnosys);
}

TEST_CASE("calls of other architectures and x32 kill the process", "[unit][launcher]") {
    CHECK(decide(20, {}, AUDIT_ARCH_I386) == kKill);
    CHECK(decide(SYS_read, {}, AUDIT_ARCH_AARCH64) == kKill);
    CHECK(decide(0x40000000U | SYS_read) == kKill);  // x32
    CHECK(decide(0x40000000U | SYS_ioctl, {0, 0x5412}) == kKill);
}

TEST_CASE("arguments are compared with the width that the kernel reads", "[unit][launcher]") {
    constexpr std::uint64_t kHigh = 1ULL << 32U;
    CHECK(decide(SYS_ioctl, {0, 0x5401}) == kAllow);  // TCGETS
    CHECK(decide(SYS_ioctl, {0, 0x5412}) == kEperm);  // TIOCSTI
    CHECK(decide(SYS_ioctl, {0, kHigh | 0x5412}) == kEperm);
    CHECK(decide(SYS_ioctl, {0, kHigh | 0x5423}) == kEperm);  // TIOCSETD
    CHECK(decide(SYS_ioctl, {0, 0x541C}) == kEperm);          // TIOCLINUX
    CHECK(decide(SYS_prctl, {15}) == kAllow);                 // PR_SET_NAME
    CHECK(decide(SYS_prctl, {67}) == kEperm);                 // PR_SET_MEMORY_MERGE
    CHECK(decide(SYS_prctl, {kHigh | 67}) == kEperm);

    CHECK(decide(SYS_clone, {17}) == kAllow);
    CHECK(decide(SYS_clone, {0x3D0F00}) == kAllow);  // a thread
    for (const std::uint64_t flag :
         {0x20000U, 0x2000000U, 0x4000000U, 0x8000000U, 0x10000000U, 0x20000000U, 0x40000000U}) {
        CHECK(decide(SYS_clone, {flag | 17}) == kEperm);
    }
    CHECK(decide(SYS_personality, {0}) == kAllow);
    CHECK(decide(SYS_personality, {0xFFFFFFFF}) == kAllow);
    CHECK(decide(SYS_personality, {0x20008}) == kAllow);    // `setarch i686 --uname-2.6`
    CHECK(decide(SYS_personality, {0x0040000}) == kEperm);  // no address space randomisation
    CHECK(decide(SYS_personality, {0x0400008}) == kEperm);  // what is readable is executable

    for (std::uint64_t family = 0; family < 64; ++family) {
        const bool internet = family == 2 || family == 10;
        for (std::uint64_t type = 0; type < 16; ++type) {
            for (const std::uint64_t protocol :
                 {0U, 1U, 6U, 17U, 33U, 58U, 115U, 132U, 136U, 255U, 262U}) {
                const bool stream = type == 1 && (protocol == 0 || protocol == 6);
                const bool datagram = type == 2 && (protocol == 0 || protocol == 17);
                const bool local = family == 1 && (type == 1 || type == 2 || type == 5);
                // SOCK_CLOEXEC | SOCK_NONBLOCK
                const std::uint32_t answer = decide(SYS_socket, {family, type | 0x80800, protocol});
                const bool route = family == 16 && protocol == 0;
                INFO("family " << family << " type " << type << " protocol " << protocol);
                CHECK(answer ==
                      (local || route || (internet && (stream || datagram)) ? kAllow : kEperm));
            }
        }
    }
    CHECK(decide(SYS_socket, {2, 1, kHigh | 132}) == kEperm);
    CHECK(decide(SYS_socket, {16, 3, 0}) == kAllow);          // route
    CHECK(decide(SYS_socket, {16, 3, 6}) == kEperm);          // xfrm
    CHECK(decide(SYS_socket, {kHigh | 38, 5, 0}) == kEperm);  // AF_ALG
    CHECK(decide(SYS_socketpair, {1, 1, 0}) == kAllow);
    CHECK(decide(SYS_socketpair, {2, 1, 0}) == kEperm);
}

TEST_CASE("a call that Docker allows is allowed, or its refusal is documented",
          "[unit][launcher]") {
    const std::string root = HEARTH_SOURCE_DIR;
    const auto text = [](const std::string& path) {
        std::stringstream content;
        content << std::ifstream(path).rdbuf();
        return content.str();
    };
    std::istringstream names(text(root + "/tests/unit/pool/isolation/docker_default.txt"));
    const std::string page = text(root + "/docs/security.md");
    std::string name;
    std::getline(names, name);
    std::size_t seen = 0;
    for (; names >> name; ++seen) {
        const int call = number(name);
        if (call < 0 || static_cast<std::uint32_t>(call) > kNewestCall) continue;
        const bool whole = decide(static_cast<std::uint32_t>(call)) == kAllow;
        INFO(name);
        CHECK((whole || page.find('`' + name + '`') != std::string::npos));
    }
    CHECK(seen > 300);
    for (const Conditional& rule : conditional()) {
        INFO(rule.name);
        CHECK(page.find('`' + std::string(rule.name) + '`') != std::string::npos);
    }
}

TEST_CASE("a program may choose how it is scheduled, and no neighbour waits for it",
          "[unit][launcher]") {
    for (const long call : {SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr}) {
        CHECK(decide(static_cast<std::uint32_t>(call), {0, 0, 0}) == kAllow);
    }
    const auto ioprio = [](std::uint64_t value) { return decide(SYS_ioprio_set, {1, 0, value}); };
    CHECK(ioprio(0) == kAllow);                 // the class that follows from the nice value
    CHECK(ioprio(3U << 13U) == kAllow);         // `ionice -c3`
    CHECK(ioprio((3U << 13U) | 7U) == kAllow);  // its level does not count
    CHECK(ioprio((2U << 13U) | 7U) == kAllow);  // `ionice -c2 -n7`
    CHECK(ioprio((2U << 13U) | 6U) == kAllow);
    CHECK(ioprio((2U << 13U) | 5U) == kEperm);
    CHECK(ioprio((2U << 13U) | (1U << 3U) | 7U) == kEperm);  // hints of commands' lifetimes
    CHECK(ioprio(1U << 13U) == kEperm);                      // real time
    CHECK(ioprio((1ULL << 32U) | (3U << 13U)) == kEperm);
}

TEST_CASE("pipes and sockets of the file system can be made, and no devices", "[unit][launcher]") {
    for (const std::uint64_t high : {0ULL, 1ULL << 16U, 1ULL << 32U}) {  // the kernel ignores these
        for (std::uint64_t type = 0; type < 16; ++type) {
            const std::uint64_t mode = high | (type << 12U) | 0600U;
            const bool harmless = type == 0 || type == 1 || type == 8 || type == 12;
            INFO("type " << type);
            CHECK(decide(SYS_mknod, {0, mode, 0x103}) == (harmless ? kAllow : kEperm));
            CHECK(decide(SYS_mknodat, {0, 0, mode, 0x103}) == (harmless ? kAllow : kEperm));
        }
    }
}

TEST_CASE("the calls of a GPU driver pass the filter", "[unit][launcher]") {
    for (const char* name : {"ioctl", "mlock", "mlock2", "munlock", "mmap", "munmap", "mremap",
                             "mprotect", "madvise", "memfd_create", "eventfd2", "poll",
                             "sched_getaffinity", "sched_setaffinity", "membarrier", "openat"}) {
        INFO(name);
        CHECK(decide(static_cast<std::uint32_t>(number(name)), {0, 0, 0}) == kAllow);
    }
    constexpr std::uint64_t kPinned =
        0x2000 | 0x8000 | 0x1;  // MAP_LOCKED, MAP_POPULATE, MAP_SHARED
    CHECK(decide(SYS_mmap, {0, 1U << 20U, 3, kPinned | 0x40000, 3, 0}) == kAllow);  // MAP_HUGETLB
    // The device's requests have the type 'F'. The requests of unified memory are small numbers.
    for (std::uint64_t request = 0; request < 256; ++request) {
        CHECK(decide(SYS_ioctl, {3, 0xC0004600 | request}) == kAllow);
        CHECK(decide(SYS_ioctl, {3, request}) == kAllow);
    }
    CHECK(decide(SYS_ioctl, {3, 0x30000001}) == kAllow);  // initialises unified memory
    CHECK(decide(SYS_ioctl, {3, 0x30000002}) == kAllow);
}

TEST_CASE("requests that load a module of the host are refused", "[unit][launcher]") {
    constexpr std::uint64_t kHigh = 1ULL << 32U;
    for (const std::uint64_t request :
         {0x8940U, 0x8941U, 0x8980U, 0x8981U, 0x8982U, 0x8983U, 0x89a0U, 0x89a1U}) {
        INFO("ioctl " << request);
        CHECK(decide(SYS_ioctl, {0, request}) == kEperm);
        CHECK(decide(SYS_ioctl, {0, kHigh | request}) == kEperm);
    }
    CHECK(decide(SYS_ioctl, {0, 0x8912}) == kAllow);  // SIOCGIFCONF
    // UDP_ENCAP, of sockets of both families; UDP_CORK and UDP_SEGMENT are for every program.
    for (const std::uint64_t high : {std::uint64_t{0}, kHigh}) {
        CHECK(decide(SYS_setsockopt, {3, high | 17, high | 100, 0, 4}) ==
              (SECCOMP_RET_ERRNO | ENOPROTOOPT));
    }
    CHECK(decide(SYS_setsockopt, {3, 17, 1, 0, 4}) == kAllow);
    CHECK(decide(SYS_setsockopt, {3, 17, 103, 0, 4}) == kAllow);
    CHECK(decide(SYS_setsockopt, {3, 1, 100, 0, 4}) == kAllow);
}

TEST_CASE("advice that evicts or tells of shared pages has no effect", "[unit][launcher]") {
    constexpr std::uint64_t kHigh = 1ULL << 32U;
    constexpr std::uint32_t kNothingDone = SECCOMP_RET_ERRNO;
    CHECK(decide(SYS_fadvise64, {3, 0, 0, 4}) == kNothingDone);  // POSIX_FADV_DONTNEED
    CHECK(decide(SYS_fadvise64, {3, 0, 0, kHigh | 4}) == kNothingDone);
    CHECK(decide(SYS_fadvise64, {3, 0, 0, 3}) == kAllow);  // POSIX_FADV_WILLNEED
    for (const std::uint64_t advice : {20U, 21U}) {        // MADV_COLD, MADV_PAGEOUT
        CHECK(decide(SYS_madvise, {0, 4096, advice}) == kNothingDone);
    }
    CHECK(decide(SYS_madvise, {0, 4096, 12}) == (SECCOMP_RET_ERRNO | EINVAL));  // MADV_MERGEABLE
    CHECK(decide(SYS_madvise, {0, 4096, 4}) == kAllow);                         // MADV_DONTNEED
    CHECK(decide(SYS_madvise, {0, 4096, 8}) == kAllow);                         // MADV_FREE
    CHECK(decide(SYS_preadv2, {3, 0, 1, 0, 0, 0}) == kAllow);
    CHECK(decide(SYS_preadv2, {3, 0, 1, 0, 0, 2}) == kAllow);  // RWF_DSYNC
    CHECK(decide(SYS_preadv2, {3, 0, 1, 0, 0, 8}) == (SECCOMP_RET_ERRNO | EOPNOTSUPP));  // NOWAIT
    CHECK(decide(SYS_preadv2, {3, 0, 1, 0, 0, 0x81}) == (SECCOMP_RET_ERRNO | EOPNOTSUPP));
    for (const int call : {SYS_process_madvise, 451}) {  // cachestat
        CHECK(decide(static_cast<std::uint32_t>(call)) != kAllow);
    }
}

TEST_CASE("the filter equals the reviewed one", "[unit][launcher]") {
    const std::string path =
        std::string(HEARTH_SOURCE_DIR) + "/tests/unit/pool/isolation/tenant_filter.pfc";
    if (std::getenv("HEARTH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << tenantPseudoCode();
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    // After an intended change: run with HEARTH_UPDATE_GOLDEN=1 and read the difference.
    CHECK((golden.str() == tenantPseudoCode()));
}

TEST_CASE("the filter around the agent allows every call that its tenants' filter allows",
          "[unit][launcher]") {
    const Json filter = ociFilter();
    CHECK(filter.at("defaultAction") == "SCMP_ACT_ERRNO");
    CHECK(filter.at("defaultErrnoRet") == 1);
    CHECK(filter.at("architectures") == Json::array({"SCMP_ARCH_X86_64"}));
    CHECK(filter.at("syscalls").at(0).at("names").size() == allowed().size());
    CHECK(filter.at("syscalls").at(1).at("errnoRet") == 38);
    CHECK(filter.at("syscalls").size() == 2 + conditional().size());
    const Json clone = filter.at("syscalls").at(2);
    CHECK(clone.at("names") == Json::array({"clone"}));
    CHECK(clone.at("args").at(0).at("op") == "SCMP_CMP_MASKED_EQ");
    CHECK(clone.at("args").at(0).at("value") == 0x7E020000);
    CHECK(clone.at("args").at(0).at("valueTwo") == 0);
}

TEST_CASE("beside an agent of its own uid a tenant cannot reach the agent or its mark",
          "[unit][launcher]") {
    const std::vector<sock_filter> program = tenantFilter(AgentIdentity::Tenant);
    const auto answer = [&](const char* name, std::array<std::uint64_t, 6> args,
                            std::uint32_t arch = AUDIT_ARCH_X86_64) {
        return decide(program, static_cast<std::uint32_t>(number(name)), args, arch);
    };
    constexpr std::uint64_t kHigh = 1ULL << 40U;  // the kernel ignores these bits
    for (const char* name : {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}) {
        CHECK(answer(name, {1, 9}) == kEperm);
        CHECK(answer(name, {kHigh | 1, 9}) == kEperm);
        CHECK(answer(name, {7, 9}) == kAllow);
    }
    CHECK(answer("kill", {~0ULL, 9}) == kAllow);  // to all processes except process 1
    CHECK(answer("prlimit64", {0, 7}) == kAllow);
    for (const std::uint64_t limit : {kHigh, kHigh | 8, 8UL}) {  // a pointer, all of which counts
        CHECK(answer("prlimit64", {0, 7, limit}) == kAllow);
        CHECK(answer("prlimit64", {1, 7, limit}) == kEperm);
        CHECK(answer("prlimit64", {12, 7, limit}) == kEperm);
        CHECK(answer("prlimit64", {kHigh, 10, limit}) == kEperm);
        CHECK(answer("prlimit64", {0, 10, limit}) == kEperm);
        CHECK(answer("prlimit64", {0, kHigh | 10, limit}) == kEperm);
    }
    CHECK(answer("prlimit64", {12, 7}) == kAllow);  // reads
    CHECK(answer("prlimit64", {0, 10}) == kAllow);
    CHECK(answer("setrlimit", {10}) == kEperm);
    CHECK(answer("setrlimit", {7}) == kAllow);
    CHECK(answer("setpriority", {0, 0, 5}) == kAllow);
    CHECK(answer("setpriority", {0, 1, 5}) == kEperm);
    CHECK(answer("setpriority", {2, 0, 5}) == kEperm);
    for (const char* name :
         {"sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity"}) {
        CHECK(answer(name, {kHigh | 1}) == kEperm);
        CHECK(answer(name, {7}) == kAllow);
    }
    CHECK(answer("ioprio_set", {1, 7, 3U << 13U}) == kAllow);
    CHECK(answer("ioprio_set", {1, 1, 3U << 13U}) == kEperm);
    CHECK(answer("ioprio_set", {3, 1000, 3U << 13U}) == kEperm);  // all of the user's
    CHECK(answer("kill", {1, 9}, AUDIT_ARCH_I386) == kKill);
}

TEST_CASE("a mark stays on where tenants run, and only a zygote's filter lets one be put on",
          "[unit][launcher]") {
    for (const AgentIdentity agent : {AgentIdentity::Root, AgentIdentity::Tenant}) {
        for (const auto& [program, answer] :
             {std::pair<std::vector<sock_filter>, std::uint32_t>(tenantFilter(agent), kEperm),
              {markFilter(), kEperm},
              {zygoteFilter(agent), kAllow}}) {
            const auto decided = [&](const char* name, std::array<std::uint64_t, 6> args) {
                return decide(program, static_cast<std::uint32_t>(number(name)), args,
                              AUDIT_ARCH_X86_64);
            };
            CHECK(decided("prlimit64", {0, 10, 8}) == answer);
            CHECK(decided("setrlimit", {10}) == answer);
            CHECK(decided("prlimit64", {12, 10, 8}) == answer);
            CHECK(decided("prlimit64", {0, 7, 8}) == kAllow);
            CHECK(decided("prlimit64", {12, 10}) == kAllow);
            CHECK(decided("read", {0}) == kAllow);
        }
    }
}

}  // namespace hearth::pool::launcher::seccomp
