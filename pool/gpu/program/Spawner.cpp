#include "pool/gpu/program/Spawner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/Error.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::pool::gpu {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
constexpr std::string_view kScrubWord = "scrub ";
constexpr std::size_t kMostRequest = 256;

/// Returns the arguments of the program for a request; empty for an unknown request.
std::vector<std::string> argumentsOf(std::string_view request) {
    if (request == "watch") return {"hearth-gpu", "watch"};
    if (!request.starts_with(kScrubWord)) return {};
    const std::string_view uuid = request.substr(kScrubWord.size());
    if (!isGpuUuid(uuid)) return {};
    return {"hearth-gpu", "scrub", std::string(uuid)};
}

[[noreturn]] void becomeProgram(std::vector<std::string>& arguments, int channel, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent || ::dup2(channel, 0) < 0 || ::dup2(channel, 1) < 0) ::_exit(127);
    ::close_range(3, ~0U, 0);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(kSelf, argv.data());
    ::_exit(127);
}

void answer(int socket, std::string_view words, const std::vector<int>& descriptors) {
    iovec part{const_cast<char*>(words.data()), words.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        const std::size_t size = descriptors.size() * sizeof(int);
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(size);
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(size);
        std::memcpy(CMSG_DATA(head), descriptors.data(), size);
    }
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0 && errno != EPIPE) throwErrno("sendmsg");
}

void start(std::vector<std::string> arguments, int socket) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throwErrno("socketpair");
    const Fd theirs(ends[0]);
    const Fd programs(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throwErrno("fork");
    if (pid == 0) becomeProgram(arguments, programs.get(), parent);
    // Nobody has waited for the child, so the number is still its own.
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process) throwErrno("pidfd_open");
    answer(socket, "ok", {theirs.get(), process.get()});
}

}  // namespace

void serveRequests(const SpawnerOptions& options) {
    std::array<char, kMostRequest> request;
    for (;;) {
        const ssize_t n = ::recv(options.socket, request.data(), request.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
        std::vector<std::string> arguments =
            argumentsOf({request.data(), static_cast<std::size_t>(n)});
        if (arguments.empty()) {
            answer(options.socket, "the request is not one of watch and scrub UUID", {});
            continue;
        }
        arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
        try {
            start(std::move(arguments), options.socket);
        } catch (const std::exception& e) {
            answer(options.socket, e.what(), {});
        }
    }
}

}  // namespace hearth::pool::gpu
