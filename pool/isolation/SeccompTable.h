#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The one table of the system calls that a sandbox may make. From it come the filter that runc
/// installs around the agent (OCI JSON) and the narrower one that the agent adds to every
/// tenant process (BPF). x86_64 only: code that enters the kernel as another architecture is
/// killed.
namespace hearth::pool::launcher::seccomp {

/// Calls with a number above the newest call known to this table get ENOSYS, so that newer C
/// libraries fall back to older calls.
inline constexpr std::uint32_t kNewestCall = 450;  // set_mempolicy_home_node

/// Allowed to the agent and to tenant code, with any arguments. Calls in no list get EPERM.
std::span<const std::string_view> allowed();
/// These get ENOSYS: callers have a fallback.
std::span<const std::string_view> notThere();

/// (argument & mask) == value, over all 64 bits.
struct Match {
    unsigned argument;
    std::uint64_t mask;
    std::uint64_t value;
};
/// The call is allowed if all matches hold.
struct Conditional {
    std::string_view name;
    std::vector<Match> matches;
};
std::vector<Conditional> conditional();

/// Refused to tenant code if the low 32 bits of an argument match: the kernel reads only these, so
/// a comparison of all 64 could be bypassed with a high bit.
struct Refused {
    enum class Where : std::uint8_t { Equal, Different, AnyBit };

    std::string_view name;
    unsigned argument;
    std::uint32_t value;
    Where where = Where::Equal;
    int error = EPERM;  ///< 0: answered as a success, without effect
    /// If set, the argument before it must also have this value.
    std::optional<std::uint32_t> before = {};
    /// If set, this argument, a pointer, must not be null either.
    std::optional<unsigned> pointer = {};
};
std::span<const Refused> refused();
/// Refused in addition if tenants have the agent's uid: signals to the agent (which the kernel
/// ignores in any case), changes of its limits and priority.
std::span<const Refused> refusedBesideAgent();
/// Calls that would remove an execution's mark (RLIMIT_LOCKS) from processes, and tenants' own
/// filters, which use up a budget of the whole machine.
std::span<const Refused> refusedOfMark();

}  // namespace hearth::pool::launcher::seccomp
