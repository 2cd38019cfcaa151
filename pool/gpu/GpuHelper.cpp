#include "pool/gpu/GpuHelper.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/Error.h"

namespace hearth::pool::gpu {
namespace {

constexpr std::size_t kMostLine = 1U << 20U;
constexpr std::size_t kMostAnswer = 512;
constexpr timeval kSpawnWithin{10, 0};
constexpr auto kHelperEnd = std::chrono::milliseconds(2000);

/// Returns the groups that may open NVIDIA's device files: Debian gives them to "video".
std::vector<gid_t> deviceGroups() {
    std::vector<gid_t> groups;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev", none)) {
        struct stat is {};
        if (!entry.path().filename().string().starts_with("nvidia")) continue;
        if (::stat(entry.path().c_str(), &is) != 0 || !S_ISCHR(is.st_mode)) continue;
        const bool by_group = (is.st_mode & S_IRGRP) != 0 && is.st_gid != 0;
        if (by_group && std::ranges::find(groups, is.st_gid) == groups.end()) {
            groups.push_back(is.st_gid);
        }
    }
    return groups;
}

/// Keeps the operator's settings of the library and its search path; nothing else is needed.
std::vector<std::string> helperEnvironment() {
    std::vector<std::string> kept = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view one = *each;
        if (one.starts_with("HEARTH_GPU_") || one.starts_with("LD_LIBRARY_PATH=")) {
            kept.emplace_back(one);
        }
    }
    return kept;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// Everything that the child needs after fork(), where it may allocate nothing.
struct HelperImage {
    int program;
    int socket;
    int null;
    char** argv;
    char** envp;
};

[[noreturn]] void becomeHelper(const HelperImage& image, const HelperOptions& options,
                               const std::vector<gid_t>& groups) {
    ::setsid();  // a Ctrl-C at the terminal is for the server
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
    if (options.uid && (::setgroups(groups.size(), groups.data()) != 0 ||
                        ::setresgid(options.gid, options.gid, options.gid) != 0 ||
                        ::setresuid(*options.uid, *options.uid, *options.uid) != 0)) {
        ::_exit(126);
    }
    // The program's descriptor is above 3, or it would be closed there.
    if (::chdir("/") != 0 || ::dup2(image.null, 0) < 0 || ::dup2(image.null, 1) < 0) ::_exit(126);
    if (::dup2(image.socket, 3) < 0) ::_exit(126);
    ::close_range(4, ~0U, CLOSE_RANGE_CLOEXEC);
    ::syscall(SYS_execveat, image.program, "", image.argv, image.envp, AT_EMPTY_PATH);
    ::_exit(127);
}

Fd aboveStandard(Fd fd) {
    return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
}

}  // namespace

GpuProgram::GpuProgram(Fd channel, Fd process)
    : channel_(std::move(channel)), process_(std::move(process)) {}

GpuProgram::~GpuProgram() {
    if (process_) kill();
}

bool GpuProgram::ask(const std::string& line) noexcept {
    const std::string text = line + "\n";
    const ssize_t n = ::send(channel_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return n == static_cast<ssize_t>(text.size());
}

GpuProgram::Heard GpuProgram::listen(std::string& line, std::chrono::steady_clock::time_point until,
                                     int stop) {
    for (;;) {
        if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
            line = read_.substr(0, end);
            read_.erase(0, end + 1);
            return Heard::Line;
        }
        if (read_.size() > kMostLine) throw std::runtime_error("hearth-gpu says too much");
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return Heard::Late;
        std::array<pollfd, 2> polled{{{channel_.get(), POLLIN, 0}, {stop, POLLIN, 0}}};
        const auto wait = static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
        if (::poll(polled.data(), polled.size(), wait) < 0 && errno != EINTR) throwErrno("poll");
        if (polled[1].revents != 0) return Heard::Stopped;
        if (polled[0].revents == 0) continue;
        std::array<char, 8192> chunk;
        const ssize_t n = ::recv(channel_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return Heard::Ended;
        read_.append(chunk.data(), static_cast<std::size_t>(n));
    }
}

void GpuProgram::kill() noexcept {
    ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

bool GpuProgram::waitEnd(std::chrono::milliseconds limit) const noexcept {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd polled{process_.get(), POLLIN, 0};
        const int ready = ::poll(&polled, 1, std::max(0, static_cast<int>(left.count())));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

GpuHelper::Started GpuHelper::start(const HelperOptions& options) {
    if (options.library == kNoLibrary) return {};
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        throwErrno("socketpair", "hearth-gpu");
    }
    Fd ours(ends[0]);
    const Fd theirs = aboveStandard(Fd(ends[1]));
    const Fd null = aboveStandard(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    // Opened here, because the helper's account need not reach the folder.
    const Fd program = aboveStandard(Fd(::open(options.program.c_str(), O_PATH | O_CLOEXEC)));
    std::vector<std::string> arguments = {
        "hearth-gpu", "serve",      "--library",      options.library,
        "--cuda",     options.cuda, "--process-wait", std::to_string(options.process_wait.count())};
    std::vector<std::string> environment = helperEnvironment();
    const std::vector<char*> argv = pointersTo(arguments);
    const std::vector<char*> envp = pointersTo(environment);
    const HelperImage image{program.get(), theirs.get(), null.get(),
                            const_cast<char**>(argv.data()), const_cast<char**>(envp.data())};
    const std::vector<gid_t> groups = deviceGroups();
    const pid_t pid = ::fork();
    if (pid < 0) throwErrno("fork", "hearth-gpu");
    if (pid == 0) becomeHelper(image, options, groups);
    ::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &kSpawnWithin, sizeof kSpawnWithin);
    return {std::move(ours), pid};
}

GpuHelper::GpuHelper(Started started, std::string program)
    : program_(std::move(program)), pid_(started.pid), socket_(std::move(started.socket)) {}

GpuHelper::~GpuHelper() {
    {
        const MutexLock lock(mutex_);
        socket_.reset();
    }
    if (pid_ <= 0) return;
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd polled{process.get(), POLLIN, 0};
    if (process) ::poll(&polled, 1, static_cast<int>(kHelperEnd.count()));
    ::waitpid(pid_, nullptr, WNOHANG);
}

GpuProgram GpuHelper::spawn(const std::string& request) {
    const MutexLock lock(mutex_);  // one request and its answer at a time
    std::array<char, kMostAnswer> words{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    iovec part{words.data(), words.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t n = ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (n >= 0) n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (n <= 0) {
        socket_.reset();  // a late answer must not be taken for that of the next request
        throw std::runtime_error("the helper " + program_ +
                                 " has ended, or could not be started: it belongs beside hearth");
    }
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(2 * sizeof(int))) {
        throw std::runtime_error("hearth-gpu: " +
                                 std::string(words.data(), static_cast<std::size_t>(n)));
    }
    std::array<int, 2> passed{};
    std::memcpy(passed.data(), CMSG_DATA(head), sizeof passed);
    return {Fd(passed[0]), Fd(passed[1])};
}

}  // namespace hearth::pool::gpu
