#include "pool/agent/program/Relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {
namespace {

constexpr int kBacklog = 64;
constexpr int kAgentWithinMs = 15'000;

int failed(const char* what) {
    std::fprintf(stderr, "hearth-agent: %s: %s\n", what, std::strerror(errno));
    return 1;
}

/// Makes this process unreadable and unstoppable for everybody except root.
void confine() {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGPIPE, SIG_IGN);
}

bool addressOf(const std::string& path, sockaddr_un& address) {
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return false;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return true;
}

/// Listens at `path`. The descriptor gets the mode, so that the file never has another one.
Fd listenAt(const std::string& path, mode_t mode) {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    umask(0);
    if (!fd || !addressOf(path, address) || fchmod(fd.get(), mode) != 0 ||
        bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(fd.get(), kBacklog) != 0) {
        return Fd();
    }
    return fd;
}

bool readable(int fd) {
    pollfd polled{fd, POLLIN, 0};
    return poll(&polled, 1, kAgentWithinMs) == 1;
}

bool sendDescriptor(int connection, int fd) {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
}

bool sayReady() {
    const std::string_view word = kRelayReady;
    return write(STDOUT_FILENO, word.data(), word.size()) == static_cast<ssize_t>(word.size());
}

/// One direction: at most one buffer of bytes is on its way.
class Lane {
public:
    Lane(int from, int to) : from_(from), to_(to) {}

    bool wantsRead() const { return size_ == 0; }
    bool wantsWrite() const { return size_ > 0; }
    int from() const { return from_; }
    int to() const { return to_; }

    /// Returns false at the end of either side.
    bool readSome() {
        const ssize_t n = ::read(from_, bytes_.data(), bytes_.size());
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        size_ = static_cast<std::size_t>(n);
        return n > 0;
    }
    bool writeSome() {
        const ssize_t n = ::write(to_, bytes_.data() + at_, size_ - at_);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        at_ += static_cast<std::size_t>(n);
        if (at_ == size_) at_ = size_ = 0;
        return true;
    }

private:
    int from_;
    int to_;
    std::size_t at_ = 0;
    std::size_t size_ = 0;
    std::array<char, 65'536> bytes_;
};

/// Serves the ready ends of one lane; false when it has ended.
bool serve(Lane& lane, short from_events, short to_events) {
    constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
    if (lane.wantsRead() && (from_events & kReadable) != 0 && !lane.readSome()) return false;
    if (lane.wantsWrite() && (to_events & (POLLOUT | POLLHUP | POLLERR)) != 0) {
        return lane.writeSome();
    }
    return true;
}

void carry(int agent) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, agent}) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    static Lane in(STDIN_FILENO, agent);
    static Lane out(agent, STDOUT_FILENO);
    for (;;) {
        const auto when = [](bool wanted, short event) {
            return wanted ? event : static_cast<short>(0);
        };
        std::array<pollfd, 3> polled{{
            {in.wantsRead() ? STDIN_FILENO : -1, POLLIN, 0},
            // Always polled: its end ends the relay, also while nothing is to be written.
            {STDOUT_FILENO, when(out.wantsWrite(), POLLOUT), 0},
            {agent,
             static_cast<short>(when(out.wantsRead(), POLLIN) | when(in.wantsWrite(), POLLOUT)), 0},
        }};
        if (poll(polled.data(), polled.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return;
        }
        if (!out.wantsWrite() && (polled[1].revents & (POLLHUP | POLLERR)) != 0) return;
        if (!serve(in, polled[0].revents, polled[2].revents)) return;
        if (!serve(out, polled[2].revents, polled[1].revents)) return;
    }
}

}  // namespace

int openFor(const std::string& folder) {
    confine();
    const std::string meeting = folder + "/socket";
    const Fd listening = listenAt(folder + "/agent", 0600);
    const Fd waiting = listening ? listenAt(meeting, 0666) : Fd();
    if (!waiting) return failed("listening socket");
    if (!readable(waiting.get())) return failed("no agent connects");
    const Fd agent(accept4(waiting.get(), nullptr, nullptr, SOCK_CLOEXEC));
    unlink(meeting.c_str());
    char byte = 0;
    if (!agent || !sendDescriptor(agent.get(), listening.get()) || !readable(agent.get()) ||
        recv(agent.get(), &byte, 1, 0) != 1) {
        return failed("the agent does not serve");
    }
    return sayReady() ? 0 : 1;
}

int relay(const std::string& folder) {
    confine();
    const Fd agent(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    if (!agent || !addressOf(folder + "/agent", address) ||
        connect(agent.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        return failed("the agent's socket");
    }
    if (!sayReady()) return 1;
    carry(agent.get());
    return 0;
}

}  // namespace hearth::agent
