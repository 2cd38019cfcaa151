#include "api/serve/process/ServerFilter.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/Error.h"
#include "base/Fd.h"

namespace hearth::controller {
namespace {

// The sanitizers look for leaks in a separate process that traces this one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kTraced = true;
#else
constexpr bool kTraced = false;
#endif

constexpr std::array kDenied = std::to_array<const char*>({
    // programs and processes
    "execve",
    "execveat",
    "fork",
    "vfork",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "pidfd_getfd",
    "kcmp",
    "personality",
    "modify_ldt",
    "uselib",
    // identity
    "capset",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setfsuid",
    "setfsgid",
    "setgroups",
    // namespaces and mounts
    "setns",
    "unshare",
    "chroot",
    "pivot_root",
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "mknod",
    "mknodat",
    "name_to_handle_at",
    "open_by_handle_at",
    "fanotify_init",
    // the kernel
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "acct",
    "syslog",
    "iopl",
    "ioperm",
    "lookup_dcookie",
    "_sysctl",
    "vhangup",
    "memfd_secret",
    "add_key",
    "request_key",
    "keyctl",
    "mbind",
    "migrate_pages",
    "move_pages",
    "set_mempolicy",
    // the machine
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
});

constexpr std::array kFamilies = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr int kNewestFamily = 46;
constexpr std::uint64_t kThread = 0x10000;  // CLONE_THREAD

struct ReleaseFilter {
    void operator()(void* context) const noexcept { ::seccomp_release(context); }
};

void check(int result, const char* what) {
    if (result < 0) throwErrno(-result, "seccomp", what);
}

int callNumber(const char* name) {
    const int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name);
    if (number < 0) throw std::logic_error(std::string("no system call of x86_64: ") + name);
    return number;
}

void deny(void* filter, const char* name) {
    check(::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), callNumber(name), 0), name);
}

void denyWhere(void* filter, const char* name, const scmp_arg_cmp& compare) {
    check(::seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), callNumber(name), 1, &compare),
          name);
}

}  // namespace

std::vector<sock_filter> serverFilter() {
    const std::unique_ptr<void, ReleaseFilter> filter(::seccomp_init(SCMP_ACT_ALLOW));
    if (!filter) throw std::bad_alloc();
    check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
          "badarch");
    check(::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
    for (const char* name : kDenied) deny(filter.get(), name);
    if (!kTraced) {
        deny(filter.get(), "ptrace");
        // Allows clone for threads only. A filter cannot see clone3's flags; libc then uses clone.
        denyWhere(filter.get(), "clone", {0, SCMP_CMP_MASKED_EQ, kThread, 0});
        check(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), callNumber("clone3"), 0),
              "clone3");
    }
    for (int family = 0; family <= kNewestFamily; ++family) {
        if (std::ranges::find(kFamilies, family) != kFamilies.end()) continue;
        denyWhere(filter.get(), "socket", {0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(family), 0});
    }
    // Denies larger values, too: the kernel reads only 32 bits and could see a rare family.
    denyWhere(filter.get(), "socket", {0, SCMP_CMP_GT, kNewestFamily, 0});

    const Fd fd(::memfd_create("filter", MFD_CLOEXEC));
    if (!fd) throwErrno("memfd_create");
    check(::seccomp_export_bpf(filter.get(), fd.get()), "export");
    const off_t size = ::lseek(fd.get(), 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
    if (::pread(fd.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
        throwErrno("read", "filter");
    }
    return program;
}

void enterServerFilter() {
    std::vector<sock_filter> program = serverFilter();
    const sock_fprog code{static_cast<unsigned short>(program.size()), program.data()};
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) != 0) {
        throwErrno("prctl", "the server's filter");
    }
}

}  // namespace hearth::controller
