#include "pool/isolation/SeccompTable.h"

#include <array>
#include <utility>

namespace hearth::pool::launcher::seccomp {
namespace {

// Docker's default list. docs/security.md names each call that Docker allows and this table does
// not, with the reason; a test compares the three.
constexpr std::array kAllowed = std::to_array<std::string_view>({
    "accept",
    "accept4",
    "access",
    "adjtimex",
    "alarm",
    "arch_prctl",
    "bind",
    "brk",
    "capget",
    "capset",
    "chdir",
    "chmod",
    "chown",
    "clock_adjtime",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "connect",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fork",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "futex_waitv",
    "futimesat",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getcwd",
    "getdents",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpeername",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "getsockname",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "getuid",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "ioctl",
    "ioprio_get",
    "kill",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listen",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "madvise",
    "membarrier",
    "memfd_create",
    "mincore",
    "mkdir",
    "mkdirat",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "mremap",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "nanosleep",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe",
    "pipe2",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "preadv",
    "preadv2",
    "prlimit64",
    "process_mrelease",
    "pselect6",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "seccomp",
    "select",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setitimer",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setsockopt",
    "setuid",
    "setxattr",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    "shutdown",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "sysinfo",
    "tee",
    "tgkill",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    "tkill",
    "truncate",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vfork",
    "vmsplice",
    "wait4",
    "waitid",
    "write",
    "writev",
});

constexpr std::array kNotThere = std::to_array<std::string_view>({
    "clone3",
    // Rings of asynchronous I/O come from one budget of the whole machine (fs.aio-max-nr).
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    // Splits the kernel's own mapping of memory into small pages, for all who use the machine.
    "memfd_secret",
    // Replaced by mmap since Linux 4.0, which imitates it.
    "remap_file_pages",
});

constexpr std::uint64_t kAll = ~0ULL;
// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
constexpr std::uint64_t kNamespaceFlags = 0x7E020000;
constexpr std::uint64_t kQueryPersonality = 0xFFFFFFFF;
constexpr std::uint64_t kLinux32 = 0x8;      // PER_LINUX32: uname tells a 32-bit machine
constexpr std::uint64_t kOldName = 0x20000;  // UNAME26: uname tells version 2.6
// The kernel reads the low 16 bits of a mode. Without a type it makes a regular file.
constexpr std::uint64_t kFileType = 0xF000;
constexpr std::uint64_t kNoType = 0;
constexpr std::uint64_t kFifo = 0x1000;
constexpr std::uint64_t kRegular = 0x8000;
constexpr std::uint64_t kSocketFile = 0xC000;
// I/O priorities: no class, the idle class, and the lowest levels of the ordinary class. A level
// above 6, which follows from the tenants' nice value, would come before neighbours' requests.
constexpr std::uint64_t kNoIoClass = 0;
constexpr std::uint64_t kIdleIoClass = 0x6000;
constexpr std::uint64_t kIoLevels = 0x1FFF;
constexpr std::uint64_t kLowIoLevel = 0x4006;
constexpr std::uint64_t kLowIoLevels = 0x1;
// The flags SOCK_CLOEXEC and SOCK_NONBLOCK are in bits above the type.
constexpr std::uint64_t kSocketType = 0xF;

constexpr std::uint64_t kUnix = 1;
constexpr std::uint64_t kInet = 2;
constexpr std::uint64_t kInet6 = 10;
constexpr std::uint64_t kNetlink = 16;
constexpr std::uint64_t kStream = 1;
constexpr std::uint64_t kDatagram = 2;
constexpr std::uint64_t kSeqPacket = 5;
constexpr std::uint64_t kAnyProtocol = 0;
constexpr std::uint64_t kTcp = 6;
constexpr std::uint64_t kUdp = 17;

constexpr std::uint32_t kTiocsti = 0x5412;    // types into the terminal of another process
constexpr std::uint32_t kTioclinux = 0x541C;  // pastes into a console
constexpr std::uint32_t kTiocsetd =
    0x5423;  // loads a line discipline's module, the worst-kept corner of terminals
constexpr std::uint32_t kSetMemoryMerge =
    67;  // PR_SET_MEMORY_MERGE: a side channel between tenants
// Answered for every user, by a module of the host: bridge, 8021q, dlci.
constexpr std::uint32_t kSiocgifbr = 0x8940;
constexpr std::uint32_t kSiocsifbr = 0x8941;
constexpr std::uint32_t kSiocadddlci = 0x8980;
constexpr std::uint32_t kSiocdeldlci = 0x8981;
constexpr std::uint32_t kSiocgifvlan = 0x8982;
constexpr std::uint32_t kSiocsifvlan = 0x8983;
constexpr std::uint32_t kSiocbraddbr = 0x89a0;
constexpr std::uint32_t kSiocbrdelbr = 0x89a1;
// All sandboxes share the pages of an image and of /.hearth: evicting one and looking for it later
// shows what a neighbour has read. These calls are advice, so having no effect is correct.
constexpr std::uint32_t kFileDontNeed = 4;  // POSIX_FADV_DONTNEED
constexpr std::uint32_t kCold = 20;         // MADV_COLD
constexpr std::uint32_t kPageOut = 21;      // MADV_PAGEOUT
constexpr std::uint32_t kMergeable = 12;    // MADV_MERGEABLE, as kSetMemoryMerge
// All flags except RWF_HIPRI, DSYNC, SYNC and APPEND: NOWAIT shows whether a page is cached,
// DONTCACHE looks without a trace. Answered as by a file system that lacks them: callers fall back.
constexpr std::uint32_t kFlagsOfCache = ~0x17U;
// Programs of the kernel's packet filter count against one budget of the whole machine
// (net.core.bpf_jit_limit): when it is used up, no sandbox can be started anywhere.
constexpr std::uint32_t kSolSocket = 1;
constexpr std::uint32_t kAttachFilter = 26;
constexpr std::uint32_t kAttachBpf = 50;
constexpr std::uint32_t kAttachReusePortFilter = 51;
constexpr std::uint32_t kAttachReusePortBpf = 52;
// Hands datagrams to code for IPsec and L2TP, and loads its modules; no program in a sandbox can
// use either. Answered as by a kernel without them.
constexpr std::uint32_t kSolUdp = 17;
constexpr std::uint32_t kUdpEncapsulation = 100;
constexpr std::uint32_t kSetModeFilter = 1;  // SECCOMP_SET_MODE_FILTER
constexpr std::uint32_t kSetSeccomp = 22;    // PR_SET_SECCOMP
constexpr auto kEqual = Refused::Where::Equal;
constexpr auto kDifferent = Refused::Where::Different;
constexpr auto kAnyBit = Refused::Where::AnyBit;
constexpr std::array kRefused = std::to_array<Refused>({
    {"ioctl", 1, kTiocsti},
    {"ioctl", 1, kTioclinux},
    {"ioctl", 1, kTiocsetd},
    {"ioctl", 1, kSiocgifbr},
    {"ioctl", 1, kSiocsifbr},
    {"ioctl", 1, kSiocadddlci},
    {"ioctl", 1, kSiocdeldlci},
    {"ioctl", 1, kSiocgifvlan},
    {"ioctl", 1, kSiocsifvlan},
    {"ioctl", 1, kSiocbraddbr},
    {"ioctl", 1, kSiocbrdelbr},
    {"prctl", 0, kSetMemoryMerge},
    {"setsockopt", 2, kAttachFilter, kEqual, EPERM, kSolSocket},
    {"setsockopt", 2, kAttachBpf, kEqual, EPERM, kSolSocket},
    {"setsockopt", 2, kAttachReusePortFilter, kEqual, EPERM, kSolSocket},
    {"setsockopt", 2, kAttachReusePortBpf, kEqual, EPERM, kSolSocket},
    {"setsockopt", 2, kUdpEncapsulation, kEqual, ENOPROTOOPT, kSolUdp},
    {"fadvise64", 3, kFileDontNeed, kEqual, 0},
    {"madvise", 2, kCold, kEqual, 0},
    {"madvise", 2, kPageOut, kEqual, 0},
    {"madvise", 2, kMergeable, kEqual, EINVAL},
    {"preadv2", 5, kFlagsOfCache, kAnyBit, EOPNOTSUPP},
});

constexpr std::uint32_t kSelf = 0;
constexpr std::uint32_t kAgent = 1;       // its pid in every sandbox
constexpr std::uint32_t kFileLocks = 10;  // RLIMIT_LOCKS
constexpr unsigned kNewLimit = 2;         // the argument of prlimit64 by which it changes a limit
constexpr std::uint32_t kOfUser = 2;      // PRIO_USER
constexpr std::uint32_t kIoOfUser = 3;    // IOPRIO_WHO_USER
constexpr std::array kRefusedBesideAgent = std::to_array<Refused>({
    {"kill", 0, kAgent},
    {"tkill", 0, kAgent},
    {"tgkill", 0, kAgent},
    {"rt_sigqueueinfo", 0, kAgent},
    {"rt_tgsigqueueinfo", 0, kAgent},
    {"setpriority", 0, kOfUser},
    {"setpriority", 1, kAgent},
    {"sched_setscheduler", 0, kAgent},
    {"sched_setparam", 0, kAgent},
    {"sched_setattr", 0, kAgent},
    {"sched_setaffinity", 0, kAgent},
    {"ioprio_set", 0, kIoOfUser},
    {"ioprio_set", 1, kAgent},
});
constexpr std::array kRefusedOfMark = std::to_array<Refused>({
    // To read limits is allowed.
    {"prlimit64", 0, kSelf, kDifferent, EPERM, {}, kNewLimit},
    {"prlimit64", 1, kFileLocks, kEqual, EPERM, {}, kNewLimit},
    {"setrlimit", 0, kFileLocks},
    // The last filter that can be installed is this one, which refuses any further filter.
    {"seccomp", 0, kSetModeFilter},
    {"prctl", 0, kSetSeccomp},
});

}  // namespace

std::span<const std::string_view> allowed() {
    return kAllowed;
}
std::span<const std::string_view> notThere() {
    return kNotThere;
}
std::span<const Refused> refused() {
    return kRefused;
}

std::span<const Refused> refusedBesideAgent() {
    return kRefusedBesideAgent;
}

std::span<const Refused> refusedOfMark() {
    return kRefusedOfMark;
}

std::vector<Conditional> conditional() {
    std::vector<Conditional> rules{
        {"clone", {{0, kNamespaceFlags, 0}}},
        {"personality", {{0, kAll, 0}}},
        {"personality", {{0, kAll, kQueryPersonality}}},
        {"personality", {{0, kAll, kLinux32}}},
        {"personality", {{0, kAll, kOldName}}},
        {"personality", {{0, kAll, kLinux32 | kOldName}}},
        {"ioprio_set", {{2, kAll, kNoIoClass}}},
        {"ioprio_set", {{2, ~kIoLevels, kIdleIoClass}}},
        {"ioprio_set", {{2, ~kLowIoLevels, kLowIoLevel}}},
        // getaddrinfo asks the kernel for its addresses: route only.
        {"socket", {{0, kAll, kNetlink}, {2, kAll, 0}}},
        {"socketpair", {{0, kAll, kUnix}}},
    };
    for (const std::uint64_t type : {kStream, kDatagram, kSeqPacket}) {
        rules.push_back({"socket", {{0, kAll, kUnix}, {1, kSocketType, type}}});
    }
    for (const std::uint64_t type : {kNoType, kFifo, kRegular, kSocketFile}) {
        rules.push_back({"mknod", {{1, kFileType, type}}});
        rules.push_back({"mknodat", {{2, kFileType, type}}});
    }
    // By protocol: the kernel loads a module for each one it knows (SCTP, DCCP, MPTCP, L2TP).
    for (const std::uint64_t family : {kInet, kInet6}) {
        for (const auto& [type, protocol] : {std::pair{kStream, kTcp}, {kDatagram, kUdp}}) {
            for (const std::uint64_t number : {kAnyProtocol, protocol}) {
                rules.push_back(
                    {"socket", {{0, kAll, family}, {1, kSocketType, type}, {2, kAll, number}}});
            }
        }
    }
    return rules;
}

}  // namespace hearth::pool::launcher::seccomp
