#include "pool/agent/program/process/Spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "pool/agent/program/core/Pipe.h"

namespace hearth::agent {

namespace {

constexpr std::string_view kTenantScore = "1000";
constexpr std::string_view kZygoteScore = "950";

/// Everything that the child needs, prepared before the fork: the child allocates nothing.
struct Plan {
    const Settings* settings = nullptr;
    char* const* argv = nullptr;
    char* const* env = nullptr;
    const std::vector<std::string>* candidates = nullptr;
    std::vector<char*>* shell_argv = nullptr;  ///< sh, a place for the file, the arguments
    const char* cwd = nullptr;
    gid_t label = 0;
    bool pty = false;
    int fds[3] = {-1, -1, -1};
    int channel = -1;
    std::string_view oom_score;
    sigset_t no_signals{};
    sock_fprog filter{};
};

[[noreturn]] void giveUp(int status, const char* what, const char* why) {
    const char* const parts[] = {"hearth: ", what, ": ", why, "\n"};
    for (const char* part : parts) {
        if (write(2, part, std::strlen(part)) < 0) break;
    }
    _exit(status);
}

const char* reason(int error) {
    switch (error) {
        case ENOENT:
            return "not found";
        case EACCES:
        case EPERM:
            return "permission denied";
        case ENOTDIR:
            return "not a directory";
        case ENOEXEC:
            return "not an executable";
        case E2BIG:
            return "argument list too long";
        case ENOMEM:
            return "out of memory";
        default:
            return "cannot be executed";
    }
}

bool putMark(Mark mark, gid_t label) {
    if (mark == Mark::Group) return syscall(SYS_setgroups, 1, &label) == 0;
    const rlimit limit{label, label};
    return setrlimit(RLIMIT_LOCKS, &limit) == 0;
}

/// Uses raw system calls: the C library's setters signal every thread in the parent's list, and in
/// a fork of a program with threads these do not exist.
bool becomeTenant(const Plan& plan) {
    const Settings& s = *plan.settings;
    if (plan.label != 0 && !putMark(s.mark, plan.label)) return false;
    if (!s.keep_identity) {
        if (syscall(SYS_setresgid, s.gid, s.gid, s.gid) != 0) return false;
        if (syscall(SYS_setresuid, s.uid, s.uid, s.uid) != 0) return false;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (s.keep_identity && geteuid() == 0) return true;  // a test that stays root
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    return syscall(SYS_capset, &header, none) == 0;
}

[[noreturn]] void child(const Plan& plan) {
    setsid();
    if (plan.pty) ioctl(plan.fds[0], TIOCSCTTY, 0);
    for (int i = 0; i < 3; ++i) dup2(plan.fds[i], i);
    unsigned first_unused = kChannelFd;
    if (plan.channel >= 0) {
        if (plan.channel != kChannelFd) dup2(plan.channel, kChannelFd);
        fcntl(kChannelFd, F_SETFD, 0);
        ++first_unused;
    }
    syscall(SYS_close_range, first_unused, ~0U, 0U);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGPIPE, &standard, nullptr);
    sigprocmask(SIG_SETMASK, &plan.no_signals, nullptr);

    // With one uid for agent and tenant, root owns this file; scoreChildren() has done the work.
    if (const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
        if (write(fd, plan.oom_score.data(), plan.oom_score.size()) < 0) errno = 0;
        close(fd);
    }
    // The agent must stay able to act beside tenants that take the whole processor; in their cgroup
    // nothing else competes, so this costs them nothing.
    if (plan.settings->init) setpriority(PRIO_PROCESS, 0, 10);
    umask(022);
    if (!becomeTenant(plan)) giveUp(125, "sandbox", "cannot give up privileges");
    if (chdir(plan.cwd) != 0) giveUp(126, plan.cwd, reason(errno));
    if (plan.filter.len > 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &plan.filter) != 0) {
        giveUp(125, "sandbox", "cannot install the system call filter");
    }
    int error = ENOENT;
    for (const std::string& candidate : *plan.candidates) {
        execve(candidate.c_str(), plan.argv, plan.env);
        if (errno == ENOEXEC) {  // a script without #!, as execvp treats it
            (*plan.shell_argv)[1] = const_cast<char*>(candidate.c_str());
            execve("/bin/sh", plan.shell_argv->data(), plan.env);
            errno = ENOEXEC;
        }
        if (errno != ENOENT && errno != ENOTDIR) error = errno;
        if (error != ENOENT && error != EACCES) break;
    }
    giveUp(error == ENOENT ? 127 : 126, plan.argv[0], reason(error));
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
    out.push_back(nullptr);
    return out;
}

std::vector<std::string> candidates(const SpawnRequest& request) {
    const std::string& program = request.argv[0];
    if (program.find('/') != std::string::npos) return {program};
    std::string_view path = "/usr/local/bin:/usr/bin:/bin";
    for (const std::string& entry : request.env) {
        if (entry.compare(0, 5, "PATH=") == 0) path = std::string_view(entry).substr(5);
    }
    std::vector<std::string> out;
    for (int i = 0; i < 64 && !program.empty(); ++i) {
        const std::size_t colon = path.find(':');
        const std::string_view dir = path.substr(0, colon);
        out.push_back((dir.empty() ? std::string(".") : std::string(dir)) + "/" + program);
        if (colon == std::string_view::npos) break;
        path.remove_prefix(colon + 1);
    }
    return out;
}

/// A child begins with its parent's score, so the parent takes the child's while it forks: the
/// kernel must kill the tenant before the agent. Best effort.
void scoreChildren(const Settings& settings, std::string_view score) {
    if (settings.oom_fd >= 0 && pwrite(settings.oom_fd, score.data(), score.size(), 0) < 0) {
        errno = 0;
    }
}

bool openPty(const Settings& settings, const SpawnRequest& request, Fd& master, Fd& slave) {
    const TenantFiles as_tenant(settings);  // the opener of the master owns the slave
    master = Fd(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    int unlock = 0;
    if (!master || ioctl(master.get(), TIOCSPTLCK, &unlock) != 0) return false;
    slave = Fd(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    winsize size{};
    size.ws_col = request.cols;
    size.ws_row = request.rows;
    ioctl(master.get(), TIOCSWINSZ, &size);
    return static_cast<bool>(slave);
}

}  // namespace

const char* spawn(const Settings& settings, const SpawnRequest& request, Spawned& out) {
    const std::vector<sock_filter>& filter =
        request.zygote ? settings.zygote_filter : settings.filter;
    if (settings.confined && filter.empty()) return "there is no valid filter beside the agent";
    Fd in;
    Fd output;
    Fd errors;
    if (request.pty) {
        if (!openPty(settings, request, out.output, in)) return "there is no terminal";
        out.input = Fd(fcntl(out.output.get(), F_DUPFD_CLOEXEC, 3));
    } else {
        if (!makePipe(settings, out.output, output) || !makePipe(settings, out.errors, errors)) {
            return "no pipe";
        }
        if (request.input >= 0) {
            in = Fd(fcntl(request.input, F_DUPFD_CLOEXEC, 3));
        } else if (request.with_stdin) {
            if (!makePipe(settings, in, out.input)) return "no pipe";
        } else {
            in = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
        }
    }
    setNonBlocking(out.input);
    setNonBlocking(out.output);
    setNonBlocking(out.errors);

    const std::vector<char*> argv = pointers(request.argv);
    const std::vector<char*> env = pointers(request.env);
    const std::vector<std::string> files = candidates(request);
    std::vector<char*> shell_argv = argv;
    shell_argv.insert(shell_argv.begin() + 1, nullptr);
    static char shell[] = "sh";
    shell_argv[0] = shell;

    Plan plan;
    plan.settings = &settings;
    plan.argv = argv.data();
    plan.env = env.data();
    plan.candidates = &files;
    plan.shell_argv = &shell_argv;
    plan.cwd = request.cwd.c_str();
    plan.label = request.label;
    plan.pty = request.pty;
    plan.fds[0] = in.get();
    plan.fds[1] = request.pty ? in.get() : output.get();
    plan.fds[2] = request.pty ? in.get() : errors.get();
    plan.channel = request.channel;
    plan.oom_score = request.zygote ? kZygoteScore : kTenantScore;
    sigemptyset(&plan.no_signals);
    plan.filter.len = static_cast<unsigned short>(filter.size());
    plan.filter.filter = const_cast<sock_filter*>(filter.data());

    scoreChildren(settings, plan.oom_score);
    const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) child(plan);
    const int error = errno;
    scoreChildren(settings, settings.oom_own);
    if (pid < 0) return error == EAGAIN ? "too many processes" : "fork failed";
    out.pid = static_cast<pid_t>(pid);
    return nullptr;
}

}  // namespace hearth::agent
