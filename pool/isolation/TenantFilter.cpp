#include "pool/isolation/TenantFilter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/isolation/SeccompTable.h"

namespace hearth::pool::launcher::seccomp {
namespace {

constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::uint64_t kEveryBit = ~0ULL;

struct ReleaseFilter {
    void operator()(void* context) const noexcept { ::seccomp_release(context); }
};
using Filter = std::unique_ptr<void, ReleaseFilter>;

void check(int result, const std::string& what) {
    if (result < 0) throwErrno(-result, "seccomp", what);
}

int callNumber(std::string_view name) {
    const std::string text(name);
    const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, text.c_str());
    if (number < 0) throw std::logic_error("no system call of x86_64: " + text);
    return number;
}

Filter buildTenantFilter() {
    Filter filter(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
    if (!filter) throw std::bad_alloc();
    check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
          "badarch");
    check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
    for (const std::string_view name : allowed()) {
        check(::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, callNumber(name), 0), "rule");
    }
    for (const std::string_view name : notThere()) {
        check(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), callNumber(name), 0),
              "rule");
    }
    for (const Conditional& rule : conditional()) {
        std::vector<scmp_arg_cmp> compare;
        for (const Match& match : rule.matches) {
            compare.push_back({match.argument, SCMP_CMP_MASKED_EQ, match.mask, match.value});
        }
        check(::seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, callNumber(rule.name),
                                       static_cast<unsigned>(compare.size()), compare.data()),
              "rule");
    }
    return filter;
}

/// Returns the bytes that an export function writes to a descriptor.
template <typename Export>
std::string exported(Export write) {
    const Fd fd(::memfd_create("filter", MFD_CLOEXEC));
    if (!fd) throwErrno("memfd_create");
    check(write(fd.get()), "export");
    std::string bytes;
    char chunk[4096];
    for (off_t at = 0;;) {
        const ssize_t n = ::pread(fd.get(), chunk, sizeof chunk, at);
        if (n < 0) throwErrno("read", "filter");
        if (n == 0) return bytes;
        bytes.append(chunk, static_cast<std::size_t>(n));
        at += n;
    }
}

sock_filter statement(unsigned code, std::uint32_t k) {
    return {static_cast<__u16>(code), 0, 0, k};
}
sock_filter jump(unsigned code, std::uint32_t k, std::size_t if_true, std::size_t if_false) {
    if (std::max(if_true, if_false) > UINT8_MAX) throw std::logic_error("a jump is too far");
    return {static_cast<__u16>(code), static_cast<__u8>(if_true), static_cast<__u8>(if_false), k};
}
std::uint32_t errnoAction(int error) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

/// Makes rules for refused arguments; each jumps over its own action if it does not match.
std::vector<sock_filter> refusals(std::span<const Refused> all) {
    constexpr unsigned kLoad = BPF_LD | BPF_W | BPF_ABS;
    constexpr unsigned kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
    constexpr unsigned kIfAnyBit = BPF_JMP | BPF_JSET | BPF_K;
    std::vector<sock_filter> rules;
    for (const Refused& rule : all) {
        const auto low_half = [](unsigned argument) {
            return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                              argument * sizeof(std::uint64_t));
        };
        const auto high_half = [&](unsigned argument) { return low_half(argument) + 4; };
        const std::size_t null = rule.pointer ? 4 : 0;  // the length of the look for a null pointer
        const std::size_t rest = (rule.before ? 5 : 3) + null;
        rules.push_back(statement(kLoad, offsetof(seccomp_data, nr)));
        rules.push_back(jump(kIfEqual, static_cast<std::uint32_t>(callNumber(rule.name)), 0, rest));
        if (rule.before) {
            rules.push_back(statement(kLoad, low_half(rule.argument - 1)));
            rules.push_back(jump(kIfEqual, *rule.before, 0, 3 + null));
        }
        rules.push_back(statement(kLoad, low_half(rule.argument)));
        const bool different = rule.where == Refused::Where::Different;
        const unsigned compare = rule.where == Refused::Where::AnyBit ? kIfAnyBit : kIfEqual;
        const std::size_t past = 1 + null;
        rules.push_back(jump(compare, rule.value, different ? past : 0, different ? 0 : past));
        if (rule.pointer) {
            rules.push_back(statement(kLoad, low_half(*rule.pointer)));
            rules.push_back(jump(kIfEqual, 0, 0, 2));
            rules.push_back(statement(kLoad, high_half(*rule.pointer)));
            rules.push_back(jump(kIfEqual, 0, 1, 0));
        }
        rules.push_back(statement(BPF_RET | BPF_K, errnoAction(rule.error)));
    }
    return rules;
}

/// Foreign architectures jump over it: the code after it kills them.
std::vector<sock_filter> prelude(std::span<const Refused> all) {
    std::vector<sock_filter> rules = refusals(all);
    const std::size_t length = rules.size();
    const std::vector<sock_filter> head{
        statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        jump(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, length + 4),
        statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        jump(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, length + 2, 0),
        jump(BPF_JMP | BPF_JGT | BPF_K, kNewestCall, 0, 1),
        statement(BPF_RET | BPF_K, errnoAction(ENOSYS)),
    };
    rules.insert(rules.begin(), head.begin(), head.end());
    return rules;
}

std::vector<sock_filter> filterWith(std::span<const Refused> refused_arguments) {
    const Filter filter = buildTenantFilter();
    const std::string body =
        exported([&](int fd) { return ::seccomp_export_bpf(filter.get(), fd); });
    std::vector<sock_filter> program = prelude(refused_arguments);
    const std::size_t own = program.size();
    program.resize(own + body.size() / sizeof(sock_filter));
    std::memcpy(&program[own], body.data(), (program.size() - own) * sizeof(sock_filter));
    if (program.size() > BPF_MAXINSNS) throw std::logic_error("the tenant filter is too long");
    return program;
}

std::vector<Refused> refusedTo(AgentIdentity agent, bool keep_mark) {
    std::vector<Refused> all(refused().begin(), refused().end());
    if (agent == AgentIdentity::Tenant) {
        all.insert(all.end(), refusedBesideAgent().begin(), refusedBesideAgent().end());
    }
    if (keep_mark) all.insert(all.end(), refusedOfMark().begin(), refusedOfMark().end());
    return all;
}

}  // namespace

Json ociFilter() {
    const auto group = [](std::span<const std::string_view> list) {
        Json names = Json::array();
        for (const std::string_view name : list) names.push_back(std::string(name));
        return names;
    };
    Json calls = Json::array();
    calls.push_back({{"names", group(allowed())}, {"action", "SCMP_ACT_ALLOW"}});
    // runc drops a rule whose action equals the default, so denied calls answer ENOSYS here.
    calls.push_back({{"names", group(notThere())},
                     {"action", "SCMP_ACT_ERRNO"},
                     {"errnoRet", static_cast<unsigned>(ENOSYS)}});
    for (const Conditional& rule : conditional()) {
        Json args = Json::array();
        for (const Match& match : rule.matches) {
            Json arg{{"index", match.argument}};
            if (match.mask == kEveryBit) {
                arg["value"] = match.value;
                arg["op"] = "SCMP_CMP_EQ";
            } else {
                arg["value"] = match.mask;
                arg["valueTwo"] = match.value;
                arg["op"] = "SCMP_CMP_MASKED_EQ";
            }
            args.push_back(std::move(arg));
        }
        calls.push_back({{"names", Json::array({std::string(rule.name)})},
                         {"action", "SCMP_ACT_ALLOW"},
                         {"args", std::move(args)}});
    }
    return {{"defaultAction", "SCMP_ACT_ERRNO"},
            {"defaultErrnoRet", static_cast<unsigned>(EPERM)},
            {"architectures", Json::array({"SCMP_ARCH_X86_64"})},
            {"syscalls", std::move(calls)}};
}

std::vector<sock_filter> tenantFilter(AgentIdentity agent) {
    return filterWith(refusedTo(agent, true));
}

std::vector<sock_filter> zygoteFilter(AgentIdentity agent) {
    return filterWith(refusedTo(agent, false));
}

std::vector<sock_filter> markFilter() {
    // The first filter has already killed foreign architectures.
    std::vector<sock_filter> program = refusals(refusedOfMark());
    program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return program;
}

std::string tenantPseudoCode() {
    const Filter filter = buildTenantFilter();
    return exported([&](int fd) { return ::seccomp_export_pfc(filter.get(), fd); });
}

}  // namespace hearth::pool::launcher::seccomp
