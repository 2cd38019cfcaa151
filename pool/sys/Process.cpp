#include "pool/sys/Process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/Error.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

constexpr int kExecFailed = 127;
constexpr int kStateField = 0;       // counted from the field after the name
constexpr int kStartTimeField = 19;  // field 22 of /proc/PID/stat

[[noreturn]] void execute(const Command& command, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kExecFailed);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    int out = null;
    if (!command.capture.empty()) {
        out = ::open(command.capture.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                     0600);
    }
    if (null < 0 || out < 0) ::_exit(kExecFailed);
    // The passed descriptor is moved away first: it may itself be 0, 1, 2 or 3.
    int passed = -1;
    if (command.pass_fd >= 0) {
        passed = ::fcntl(command.pass_fd, F_DUPFD_CLOEXEC, 16);
        if (passed < 0) ::_exit(kExecFailed);
    }
    if (::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(null, 2) < 0) ::_exit(kExecFailed);
    if (passed >= 0 && ::dup2(passed, 3) < 0) ::_exit(kExecFailed);
    ::close_range(passed >= 0 ? 4 : 3, ~0U, 0);

    std::vector<char*> argv;
    argv.reserve(command.argv.size() + 1);
    for (const std::string& arg : command.argv) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    const std::string path = std::string("PATH=") + kProgramPath;
    const char* const environment[] = {path.c_str(), "HOME=/root", "LC_ALL=C", nullptr};
    ::setenv("PATH", kProgramPath, 1);
    ::execvpe(argv[0], argv.data(), const_cast<char* const*>(environment));
    ::_exit(kExecFailed);
}

/// Counts to the point where the process ends.
std::uint64_t entriesOf(const std::string& folder) {
    std::error_code gone;
    std::uint64_t entries = 0;
    for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end;
         at.increment(gone)) {
        ++entries;
    }
    return entries;
}

}  // namespace

std::optional<Process> Process::open(pid_t pid) {
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!fd) {
        if (errno == ESRCH || errno == EINVAL) return std::nullopt;
        throwErrno("pidfd_open", std::to_string(pid));
    }
    return Process(pid, std::move(fd));
}

bool Process::waitEnd(std::chrono::milliseconds limit) const {
    pollfd ended{fd_.get(), POLLIN, 0};
    for (;;) {
        const int n = ::poll(&ended, 1, static_cast<int>(limit.count()));
        if (n >= 0) return n == 1;
        if (errno != EINTR) throwErrno("poll", "pidfd");
    }
}

void Process::kill() const {
    if (::syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH) {
        throwErrno("pidfd_send_signal", std::to_string(pid_));
    }
}

std::optional<std::uint64_t> processStartTime(pid_t pid) {
    const std::optional<std::string> stat = readFile("/proc/" + std::to_string(pid) + "/stat");
    if (!stat) return std::nullopt;
    // The process chooses the name, which may hold blanks and brackets: begin after the last one.
    std::size_t at = stat->rfind(')');
    for (int field = kStateField; at != std::string::npos; ++field) {
        at = stat->find(' ', at);
        if (at == std::string::npos) break;
        ++at;
        if (field == kStateField && ((*stat)[at] == 'Z' || (*stat)[at] == 'X')) break;
        if (field == kStartTimeField) return std::strtoull(stat->c_str() + at, nullptr, 10);
    }
    return std::nullopt;
}

std::uint64_t openFiles(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    // Since Linux 6.2, the size of the folder is the number of its entries; before, it is 0.
    struct stat status {};
    const bool counted = ::stat((folder + "/fd").c_str(), &status) == 0 && status.st_size > 0;
    const std::uint64_t descriptors =
        counted ? static_cast<std::uint64_t>(status.st_size) : entriesOf(folder + "/fd");
    return descriptors + entriesOf(folder + "/map_files");
}

int run(const Command& command) {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throwErrno("fork", command.argv.at(0));
    if (pid == 0) execute(command, parent);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) throwErrno("waitpid", command.argv.at(0));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace hearth::sys
