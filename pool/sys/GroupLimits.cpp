#include "pool/sys/GroupLimits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <stdexcept>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
/// The kernel's own bounds for a quota and a period, in microseconds.
constexpr std::uint64_t kShortest = 1000;
constexpr std::uint64_t kLongest = 1'000'000;

/// Takes a number of a kernel file from the front of `text`; "max" and "-1" are no limit.
std::uint64_t takeLimit(std::string_view& text) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word == "max" || word == "-1") return kNone;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size()) {
        throw std::runtime_error("a control group has a limit that is no number");
    }
    return number;
}

std::string need(const std::string& file) {
    const std::optional<std::string> text = readFile(file);
    if (!text) throw Error(ErrorCode::NotFound, "the control group has gone");
    return *text;
}

std::uint64_t limitIn(const std::string& file) {
    const std::string text = need(file);
    std::string_view rest = text;
    return takeLimit(rest);
}

/// Returns false if the kernel calls it busy: more than `value` is in use.
bool write(const std::string& file, const std::string& value) {
    const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) throw Error(ErrorCode::NotFound, "the control group has gone");
    if (!fd) throwErrno("open", file);
    if (::write(fd.get(), value.data(), value.size()) >= 0) return true;
    if (errno == EBUSY) return false;
    if (errno == ENODEV) throw Error(ErrorCode::NotFound, "the control group has gone");
    throwErrno("write", file);
}

std::uint64_t wholePages(std::uint64_t bytes) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return bytes / page * page;
}

/// The present limits of one group in the kernel.
class Group {
public:
    Group(const Cgroups& cgroups, const std::string& path)
        : unified_(cgroups.version() == CgroupVersion::V2),
          cpu_(directory(cgroups, "cpu", path)),
          memory_(directory(cgroups, "memory", path)),
          pids_(directory(cgroups, "pids", path)) {
        if (unified_) {
            const std::string text = need(cpu_ + "/cpu.max");
            std::string_view rest = text;
            quota_ = takeLimit(rest);
            period_ = takeLimit(rest);
        } else {
            quota_ = limitIn(cpu_ + "/cpu.cfs_quota_us");
            period_ = limitIn(cpu_ + "/cpu.cfs_period_us");
        }
        if (period_ < kShortest || period_ > kLongest) {
            throw std::runtime_error("a control group has a CPU period that no kernel gives");
        }
        memory_limit_ = limitIn(memory_ + (unified_ ? "/memory.max" : "/memory.limit_in_bytes"));
        pids_limit_ = limitIn(pids_ + "/pids.max");
    }

    void refuseMore(const GroupLimits& wanted) const {
        if (quotaFor(wanted) > quota_ || wholePages(wanted.memory_bytes) > memory_limit_ ||
            wanted.processes > pids_limit_) {
            throw Error(ErrorCode::Forbidden, "a limit of a control group would be raised");
        }
    }

    std::optional<LimitInUse> lower(const GroupLimits& wanted) const {
        if (wanted.processes < pids_limit_) {
            const std::uint64_t used = limitIn(pids_ + "/pids.current");
            if (used >= wanted.processes) return LimitInUse{LimitInUse::Of::Processes, used};
            write(pids_ + "/pids.max", std::to_string(wanted.processes));
        }
        if (const std::uint64_t quota = quotaFor(wanted); quota < quota_) {
            const std::string value = std::to_string(quota);
            if (unified_) {
                write(cpu_ + "/cpu.max", value + " " + std::to_string(period_));
            } else {
                write(cpu_ + "/cpu.cfs_quota_us", value);
            }
        }
        const std::uint64_t bytes = wholePages(wanted.memory_bytes);
        if (bytes >= memory_limit_ || (unified_ ? lowerUnified(bytes) : lowerOld(bytes))) {
            return std::nullopt;
        }
        const std::string usage = unified_ ? "/memory.current" : "/memory.usage_in_bytes";
        return LimitInUse{LimitInUse::Of::Memory, limitIn(memory_ + usage)};
    }

    std::uint64_t needed() const {
        const std::uint64_t used =
            limitIn(memory_ + (unified_ ? "/memory.current" : "/memory.usage_in_bytes"));
        const std::string stat = need(memory_ + "/memory.stat");
        // Pages of files on disk, and the kernel's own caches. Version 1 includes the groups below
        // only in its totals.
        const std::string prefix = unified_ ? "" : "total_";
        std::uint64_t spare = 0;
        for (const char* name : {"active_file", "inactive_file", "slab_reclaimable"}) {
            spare += keyedNumber(stat, prefix + name);
        }
        return used - std::min(used, spare);
    }

private:
    static std::string directory(const Cgroups& cgroups, const char* controller,
                                 const std::string& path) {
        const std::optional<std::string> found = cgroups.directory(controller, path);
        if (found) return *found;
        throw std::runtime_error(std::string("this machine has no control groups for ") +
                                 controller);
    }

    std::uint64_t quotaFor(const GroupLimits& wanted) const {
        return std::max(wanted.milli_cpu * period_ / 1000, kShortest);
    }

    /// Version 1 takes back no memory in use: it reports that it is busy.
    bool lowerOld(std::uint64_t bytes) const {
        const std::string value = std::to_string(bytes);
        if (!write(memory_ + "/memory.limit_in_bytes", value)) return false;
        // The limit with swap equals the limit, if swap is counted at all.
        const std::string with_swap = memory_ + "/memory.memsw.limit_in_bytes";
        return ::access(with_swap.c_str(), F_OK) != 0 || write(with_swap, value);
    }

    /// Version 2 kills if it cannot reclaim enough, so the use is checked before and after.
    bool lowerUnified(std::uint64_t bytes) const {
        if (needed() > bytes) return false;
        const std::string events = memory_ + "/memory.events";
        const std::uint64_t before = keyedNumber(need(events), "oom_kill");
        return write(memory_ + "/memory.max", std::to_string(bytes)) &&
               keyedNumber(need(events), "oom_kill") == before;
    }

    bool unified_;
    std::string cpu_;
    std::string memory_;
    std::string pids_;
    std::uint64_t quota_ = kNone;
    std::uint64_t period_ = 0;
    std::uint64_t memory_limit_ = kNone;
    std::uint64_t pids_limit_ = kNone;
};

}  // namespace

std::optional<LimitInUse> lowerLimits(const Cgroups& cgroups, const std::string& path,
                                      const GroupLimits& wanted) {
    const Group group(cgroups, path);
    group.refuseMore(wanted);
    return group.lower(wanted);
}

void boundSocketMemory(const Cgroups& cgroups, const std::string& path, std::uint64_t bytes) {
    const std::optional<std::string> group = cgroups.directory("memory", path);
    if (!group) return;
    const std::string file = *group + "/memory.kmem.tcp.limit_in_bytes";
    const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return;  // version 2, or a kernel that counts no sockets apart
    const std::string value = std::to_string(bytes);
    if (!fd || ::write(fd.get(), value.data(), value.size()) < 0) throwErrno("write", file);
}

std::optional<std::uint64_t> memoryNeeded(const Cgroups& cgroups, const std::string& path) {
    try {
        return Group(cgroups, path).needed();
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound) return std::nullopt;
        throw;
    }
}

}  // namespace hearth::sys
