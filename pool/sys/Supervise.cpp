#include "pool/sys/Supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int kCannotEnter = 126;
constexpr int kCannotStart = 127;
constexpr int kLookEvery = 100;  // milliseconds
constexpr std::size_t kMaxOut = 1U << 20U;
constexpr std::size_t kMaxSaid = 8192;

struct Pipe {
    Fd read;
    Fd write;
};

Pipe makePipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throwErrno("pipe");
    return {Fd(ends[0]), Fd(ends[1])};
}

/// In the child: enters a user namespace, once the parent has mapped its root, and a pid namespace,
/// so that nothing outlives the program.
void becomeRootOf(int tell, int hear) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) throwErrno("unshare", "user namespace");
    char byte = 'u';
    if (::write(tell, &byte, 1) != 1 || ::read(hear, &byte, 1) != 1) throwErrno("map users");
    if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) throwErrno("setresuid");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears it
    const pid_t first = ::fork();
    if (first < 0) throwErrno("fork");
    if (first == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    ::close_range(0, ~0U, 0);  // the output pipes must close when `first` ends
    int status = 0;
    while (::waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

[[noreturn]] void become(const Supervised& program, pid_t parent, int out, int err, int tell,
                         int hear) {
    try {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(kCannotStart);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
        const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) {
            ::_exit(kCannotStart);
        }
        if (program.enter) program.enter();
        if (program.root_is) becomeRootOf(tell, hear);
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        ::close_range(3, ~0U, 0);
        std::vector<std::string> environment = program.environment;
        // After the given ones: of two with the same name the first counts.
        environment.insert(environment.end(), {kPath, "HOME=/root", "LC_ALL=C"});
        std::vector<char*> argv;
        std::vector<char*> envp;
        for (const std::string& word : program.argv)
            argv.push_back(const_cast<char*>(word.c_str()));
        for (const std::string& each : environment) envp.push_back(const_cast<char*>(each.c_str()));
        argv.push_back(nullptr);
        envp.push_back(nullptr);
        ::setenv("PATH", kPath + 5, 1);
        ::execvpe(argv[0], argv.data(), envp.data());
        ::_exit(kCannotStart);
    } catch (const std::exception& e) {
        static_cast<void>(::write(2, e.what(), std::strlen(e.what())));
    }
    ::_exit(kCannotEnter);
}

void writeMaps(pid_t pid, uid_t root) {
    const std::string proc = "/proc/" + std::to_string(pid);
    const std::string map = "0 " + std::to_string(root) + " 1\n";
    writeKernelFile(proc + "/setgroups", "deny");
    writeKernelFile(proc + "/gid_map", map);
    writeKernelFile(proc + "/uid_map", map);
}

/// Reads the available bytes; false at the end.
bool drain(const Fd& fd, std::string& text, std::size_t most, bool keep_tail) {
    std::array<char, 8192> chunk;
    const ssize_t n = ::read(fd.get(), chunk.data(), chunk.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    text.append(chunk.data(), static_cast<std::size_t>(n));
    if (text.size() > most) keep_tail ? text.erase(0, text.size() - most) : text.erase(most);
    return n > 0;
}

/// Kills the program unless it has been waited for.
class Child {
public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ <= 0) return;
        kill();
        wait();
    }
    pid_t pid() const { return pid_; }
    void kill() const {
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);  // it may not lead its group yet
    }
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0) {
            if (errno != EINTR) throwErrno("waitpid");
        }
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

private:
    pid_t pid_;
};

}  // namespace

Outcome supervise(const Supervised& program) {
    Pipe out = makePipe();
    Pipe err = makePipe();
    Pipe tell = makePipe();
    Pipe hear = makePipe();
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throwErrno("fork", program.argv.at(0));
    if (pid == 0) {
        become(program, parent, out.write.get(), err.write.get(), tell.write.get(),
               hear.read.get());
    }
    Child child(pid);
    for (Fd* fd : {&out.write, &err.write, &tell.write, &hear.read}) fd->reset();
    for (const Fd* fd : {&out.read, &err.read, &tell.read}) {
        if (::fcntl(fd->get(), F_SETFL, O_NONBLOCK) != 0) throwErrno("fcntl");
    }
    Outcome outcome;
    const auto end = std::chrono::steady_clock::now() + program.limit;
    auto look = std::chrono::steady_clock::now();
    while (out.read || err.read) {
        std::array<pollfd, 3> polled{{{out.read ? out.read.get() : -1, POLLIN, 0},
                                      {err.read ? err.read.get() : -1, POLLIN, 0},
                                      {tell.read ? tell.read.get() : -1, POLLIN, 0}}};
        if (::poll(polled.data(), polled.size(), kLookEvery) < 0 && errno != EINTR) {
            throwErrno("poll");
        }
        if (polled[0].revents != 0 && !drain(out.read, outcome.out, kMaxOut, false)) {
            out.read.reset();
        }
        if (polled[1].revents != 0 && !drain(err.read, outcome.said, kMaxSaid, true)) {
            err.read.reset();
        }
        if (polled[2].revents != 0) {
            char byte = 0;
            if (::read(tell.read.get(), &byte, 1) == 1) {
                writeMaps(pid, program.root_is.value());
                if (::write(hear.write.get(), &byte, 1) != 1) throwErrno("write", "map users");
            }
            tell.read.reset();
        }
        const auto now = std::chrono::steady_clock::now();
        if (now >= end && !outcome.late) {
            outcome.late = true;
            child.kill();
        }
        if (program.watch && now >= look) {
            program.watch();
            look = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLookEvery);
        }
    }
    outcome.status = child.wait();
    return outcome;
}

}  // namespace hearth::sys
