// What hostile code would try, one group a run. Prints "name=errno" (0: it worked), one a line.
// Static, so that it runs in an image without a C library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void tell(const char* name, long result) {
    printf("%s=%d\n", name, result < 0 ? errno : 0);
    fflush(stdout);
}

static void sockets(void) {
    for (int family = 0; family < 46; ++family) {
        char name[32];
        snprintf(name, sizeof name, "family%d", family);
        int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 && errno != EPERM) fd = socket(family, SOCK_STREAM, 0);
        tell(name, fd);
        if (fd >= 0) close(fd);
    }
    tell("raw", socket(AF_INET, SOCK_RAW, 1));
    static const struct {
        const char* name;
        int type, protocol;
    } kProtocols[] = {{"tcp", SOCK_STREAM, 6},           {"udp", SOCK_DGRAM, 17},
                      {"ping", SOCK_DGRAM, 1},           {"sctp", SOCK_SEQPACKET, 132},
                      {"sctp_stream", SOCK_STREAM, 132}, {"dccp", 6, 33},
                      {"udplite", SOCK_DGRAM, 136},      {"l2tp", SOCK_DGRAM, 115},
                      {"mptcp", SOCK_STREAM, 262},       {"packets", SOCK_SEQPACKET, 0}};
    for (size_t i = 0; i < sizeof kProtocols / sizeof *kProtocols; ++i) {
        for (int v6 = 0; v6 < 2; ++v6) {
            char name[32];
            snprintf(name, sizeof name, "%s%s", kProtocols[i].name, v6 ? "6" : "4");
            tell(name, socket(v6 ? AF_INET6 : AF_INET, kProtocols[i].type, kProtocols[i].protocol));
        }
    }
    static const unsigned kLoading[] = {0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89a0, 0x89a1};
    const int any = socket(AF_INET, SOCK_DGRAM, 0);
    for (size_t i = 0; i < sizeof kLoading / sizeof *kLoading; ++i) {
        char name[32];
        snprintf(name, sizeof name, "ioctl_%x", kLoading[i]);
        tell(name, ioctl(any, kLoading[i], name));
    }
    tell("netlink_xfrm", socket(AF_NETLINK, SOCK_RAW, 6));
    int pair[2];
    tell("pair_unix", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    tell("pair_inet", socketpair(AF_INET, SOCK_STREAM, 0, pair));
}

static void attacks(void) {
    tell("kill_agent", kill(1, SIGKILL));
    tell("ptrace_agent", ptrace(PTRACE_ATTACH, 1, 0, 0));
    tell("mem_agent", open("/proc/1/mem", O_RDWR));
    tell("environ_agent", open("/proc/1/environ", O_RDONLY));
    tell("setresuid", setresuid(0, 0, 0));
    tell("setgid", setgid(0));
    tell("setgroups", syscall(SYS_setgroups, 0, NULL));
    tell("unshare_user", unshare(CLONE_NEWUSER));
    tell("clone_user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    tell("clone3", syscall(SYS_clone3, NULL, 0));
    tell("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    tell("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
    tell("bpf", syscall(SYS_bpf, 0, NULL, 0));
    tell("keyctl", syscall(SYS_keyctl, 0, 0));
    tell("userfaultfd", syscall(SYS_userfaultfd, 0));
    tell("perf", syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
    tell("newer_call", syscall(462, 0));
    tell("tiocsti", syscall(SYS_ioctl, 0, (unsigned long)TIOCSTI, "x"));
    tell("tiocsti_high", syscall(SYS_ioctl, 0, (1UL << 32) | TIOCSTI, "x"));
    tell("memory_merge", syscall(SYS_prctl, 67UL, 1, 0, 0, 0));
    tell("memory_merge_high", syscall(SYS_prctl, (1UL << 32) | 67UL, 1, 0, 0, 0));
    tell("mknod", mknod("/workspace/disk", S_IFBLK | 0600, 0xfe00));
    tell("write_root", open("/etc/owned", O_WRONLY | O_CREAT, 0600));
    tell("write_agent", open("/.hearth/agent", O_WRONLY));
    tell("write_sysctl", open("/proc/sys/kernel/hostname", O_WRONLY));
    tell("raise_nofile", setrlimit(RLIMIT_NOFILE, &(struct rlimit){65537, 65537}));
}

// Calls that real programs need, and the forms of them that must not work.
static void needs(void) {
    tell("fifo", mkfifo("/workspace/pipe", 0600));
    tell("socket_file", mknod("/workspace/socket", S_IFSOCK | 0600, 0));
    tell("no_char", mknod("/workspace/null", S_IFCHR | 0600, 0x103));
    struct sched_param param = {0};
    const pid_t self = 0;
    tell("batch", sched_setscheduler(self, SCHED_BATCH, &param));
    tell("ordinary", sched_setscheduler(self, SCHED_OTHER, &param));
    tell("param", sched_setparam(self, &param));
    tell("no_raise", setrlimit(RLIMIT_RTPRIO, &(struct rlimit){1, 1}));
    param.sched_priority = 1;
    tell("no_fifo", sched_setscheduler(self, SCHED_FIFO, &param));
    tell("no_round_robin", sched_setscheduler(self, SCHED_RR, &param));
    tell("idle_io", syscall(SYS_ioprio_set, 1, 0, 3 << 13));
    tell("no_first_io", syscall(SYS_ioprio_set, 1, 0, 2 << 13));
    tell("own_uid", setresuid(getuid(), getuid(), getuid()));
    tell("own_gid", setresgid(getgid(), getgid(), getgid()));
}

static void int80(void) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
    printf("alive=%ld\n", result);
}

static void x32(void) {
    printf("alive=%ld\n", syscall(0x40000000L | SYS_getpid));
}

static void inodes(void) {
    long made = 0;
    char name[64];
    for (;; ++made) {
        snprintf(name, sizeof name, "/workspace/i%ld", made);
        const int fd = open(name, O_WRONLY | O_CREAT, 0600);
        if (fd < 0) break;
        close(fd);
    }
    const int error = errno;
    printf("made=%ld\nerror=%d\n", made, error);
}

static void fill(void) {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    const int fd = open("/workspace/full", O_WRONLY | O_CREAT, 0600);
    long bytes = 0;
    ssize_t n;
    signal(SIGXFSZ, SIG_IGN);
    while ((n = write(fd, block, sizeof block)) > 0) bytes += n;
    const int error = errno;
    printf("bytes=%ld\nerror=%d\n", bytes, error);
}

static void watches(void) {
    int made = 0;
    while (made < 1000 && inotify_init1(0) >= 0) ++made;
    const int error = errno;
    printf("made=%d\nerror=%d\n", made, error);
}

static void pty(void) {
    const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    tell("ptmx", master);
    tell("grant", grantpt(master));
    tell("unlock", unlockpt(master));
    const char* name = ptsname(master);
    printf("name=%s\n", name ? name : "none");
    tell("slave", name ? open(name, O_RDWR | O_NOCTTY) : -1);
}

static void memory(void) {
    for (;;) {
        char* block = malloc(1 << 20);
        if (block == NULL) return;
        memset(block, 'x', 1 << 20);
    }
}

static void bomb(void) {
    signal(SIGTERM, SIG_IGN);
    printf("bomb=0\n");
    fflush(stdout);
    for (;;) fork();
}

// Four processes that hop: each is the child of one that has ended at once. All of them hold one lock, which `hopped`
// tells to be free when none is left. The parent stays.
static void hop(void) {
    const int lock = open("/workspace/hop", O_RDWR | O_CREAT, 0600);
    tell("hop", flock(lock, LOCK_EX | LOCK_NB));
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 4; ++i) {
        if (fork() != 0) continue;
        for (;;) {
            const pid_t pid = fork();
            if (pid > 0) _exit(0);
            if (pid == 0) setsid();
        }
    }
    for (;;) pause();
}

static void hopped(void) {
    tell("hopped", flock(open("/workspace/hop", O_RDWR), LOCK_EX | LOCK_NB));
}

// What evicts pages of a file that sandboxes share, and what tells whether they are there.
static void pages(void) {
    int fd = open("/shared", O_RDONLY);
    if (fd < 0) fd = open("/bin/probe", O_RDONLY);
    static char byte;
    tell("open", fd);
    tell("evict", syscall(SYS_fadvise64, fd, 0L, 0L, POSIX_FADV_DONTNEED));
    char* map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    tell("pageout", madvise(map, 4096, 21));
    tell("cold", madvise(map, 4096, 20));
    struct iovec part = {&byte, 1};
    tell("nowait", preadv2(fd, &part, 1, 0, RWF_NOWAIT));
    tell("uncached", preadv2(fd, &part, 1, 0, 0x80));
    tell("plain", preadv2(fd, &part, 1, 0, 0));
    tell("cachestat", syscall(451, fd, NULL, NULL, 0));
}

static const char* const kShared[] = {"/.hearth",  "/.hearth/agent", "/dev",        "/dev/null",
                                      "/dev/zero", "/dev/full",      "/dev/random", "/dev/urandom",
                                      "/dev/tty",  "/bin",           "/shared"};
enum { kSharedCount = sizeof kShared / sizeof *kShared };

// Watches what others may have too, and tells what it saw of them within two seconds.
static void spy(void) {
    const int fd = inotify_init1(0);
    int watch[kSharedCount];
    for (int i = 0; i < kSharedCount; ++i) {
        watch[i] = inotify_add_watch(fd, kShared[i], IN_ALL_EVENTS);
        if (watch[i] < 0) tell(kShared[i], -1);
    }
    close(open("/dev/zero", O_RDONLY));  // so that a spy that sees nothing is known to be one
    printf("watching=0\n");
    fflush(stdout);
    sleep(2);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    char events[8192];
    int own = 0, others = 0;
    ssize_t n;
    while ((n = read(fd, events, sizeof events)) > 0) {
        for (char* at = events; at < events + n;) {
            const struct inotify_event* event = (const struct inotify_event*)at;
            int which = 0;
            while (which < kSharedCount && watch[which] != event->wd) ++which;
            const int is_own = which == 4 || (which == 2 && strcmp(event->name, "zero") == 0);
            is_own ? ++own : ++others;
            if (!is_own) printf("saw=%s %s\n", kShared[which], event->len ? event->name : "");
            at += sizeof *event + event->len;
        }
    }
    printf("own=%d\nothers=%d\n", own, others);
}

// Locks what others may have too, until it is ended.
static void hold(void) {
    for (int i = 0; i < kSharedCount; ++i) {
        const int fd = open(kShared[i], O_RDONLY | O_NONBLOCK);
        tell(kShared[i], fd < 0 ? fd : flock(fd, LOCK_EX | LOCK_NB));
    }
    sleep(20);
}

static void useShared(void) {
    for (int i = 0; i < kSharedCount; ++i) {
        if (strcmp(kShared[i], "/dev/zero") == 0) continue;  // the spy's own
        const int fd = open(kShared[i], O_RDONLY | O_NONBLOCK);
        char byte;
        if (fd >= 0 && read(fd, &byte, 1) < 0) errno = 0;
        tell(kShared[i], fd < 0 ? (errno == ENXIO ? 0 : -1) : flock(fd, LOCK_EX | LOCK_NB));
        if (fd >= 0) close(fd);
    }
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kProbes[] = {{"sockets", sockets}, {"attacks", attacks}, {"needs", needs}, {"int80", int80}, {"x32", x32},
                   {"inodes", inodes},   {"fill", fill},       {"watches", watches}, {"pty", pty},
                   {"memory", memory},   {"bomb", bomb},       {"pages", pages},     {"spy", spy},
                   {"hold", hold},       {"use", useShared},   {"hop", hop},     {"hopped", hopped}};
    for (size_t i = 0; argc == 2 && i < sizeof kProbes / sizeof *kProbes; ++i) {
        if (strcmp(argv[1], kProbes[i].name) == 0) {
            kProbes[i].run();
            return 0;
        }
    }
    return 2;
}
