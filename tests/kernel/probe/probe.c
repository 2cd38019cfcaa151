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
    tell("raise_nofile", setrlimit(RLIMIT_NOFILE, &(struct rlimit){4096, 4096}));
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

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kProbes[] = {{"sockets", sockets}, {"attacks", attacks}, {"int80", int80},     {"x32", x32},
                   {"inodes", inodes},   {"fill", fill},       {"watches", watches}, {"pty", pty},
                   {"memory", memory},   {"bomb", bomb}};
    for (size_t i = 0; argc == 2 && i < sizeof kProbes / sizeof *kProbes; ++i) {
        if (strcmp(argv[1], kProbes[i].name) == 0) {
            kProbes[i].run();
            return 0;
        }
    }
    return 2;
}
