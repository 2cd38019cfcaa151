#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "pool/agent/program/Agent.h"
#include "pool/agent/program/Identity.h"
#include "pool/agent/program/PodStart.h"
#include "pool/agent/program/Relay.h"
#include "pool/agent/program/TcpListener.h"

namespace {

using hearth::Fd;
using hearth::agent::Settings;

/// Opens descriptors 0 to 2, or a socket would get one of them and be given to a tenant.
void takeStandardFds() {
    int fd = 0;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3) continue;
    if (fd >= 3) close(fd);
}

int optionOf(const Fd& fd, int name) {
    int value = 0;
    socklen_t size = sizeof(value);
    return getsockopt(fd.get(), SOL_SOCKET, name, &value, &size) == 0 ? value : 0;
}

/// Checks that it listens, and that it is a network socket only if the server must prove itself.
bool isListening(const Fd& fd, const Settings& settings) {
    const bool network = optionOf(fd, SO_DOMAIN) != AF_UNIX;
    return optionOf(fd, SO_ACCEPTCONN) != 0 && network == settings.server.has_value();
}

bool addressOf(const std::string& path, sockaddr_un& address) {
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return false;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return true;
}

/// Polled: inotify would report when a socket is bound, which is before it listens.
constexpr int kMeetingTries = 6'000;
constexpr useconds_t kMeetingPauseUs = 10'000;

/// Waits a minute for a listener at `path`: a program beside the agent (`--open`) starts after the
/// agent.
bool meet(const Fd& fd, const std::string& path) {
    sockaddr_un address{};
    if (!fd || !addressOf(path, address)) return false;
    for (int i = 0; i < kMeetingTries; ++i) {
        if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
            return true;
        }
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EINTR) return false;
        usleep(kMeetingPauseUs);
    }
    return false;
}

/// Receives the listening socket from a server that cannot leave a descriptor. No tenant code has
/// run yet, so the listener there is the server's. `handover` stays open until the server may know
/// that the agent is ready.
Fd received(const std::string& path, Fd& handover) {
    handover = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!meet(handover, path)) return Fd();
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(handover.get(), &message, MSG_CMSG_CLOEXEC) != 1) return Fd();
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (c == nullptr || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int))) {
        return Fd();
    }
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return Fd(fd);
}

Fd madeAt(const std::string& path) {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    if (!fd || !addressOf(path, address)) return Fd();
    umask(0177);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(fd.get(), 64) != 0) {
        return Fd();
    }
    return fd;
}

Fd listener(const Settings& settings, Fd& handover) {
    Fd fd = !settings.receive.empty()  ? received(settings.receive, handover)
            : settings.tcp != 0        ? hearth::agent::listenOnTcp(settings.tcp)
            : !settings.listen.empty() ? madeAt(settings.listen)
                                       : Fd(hearth::agent::kListenFd);
    if (!fd || !isListening(fd, settings)) {
        (void)fd.release();  // the number may belong to something else
        return Fd();
    }
    fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    return fd;
}

/// Resets all signals, and sends the agent's own to a descriptor. A tenant inherits nothing of it.
Fd prepareSignals() {
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t ours;
    sigemptyset(&ours);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&ours, number);
    sigprocmask(SIG_SETMASK, &ours, nullptr);
    return Fd(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Settings that every process of the sandbox inherits, and protection of this process from
/// tenants.
void confine(const Settings& settings) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (settings.init) {
        for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability)
            continue;
    } else {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
    // The filter allows sched_setscheduler and setpriority, and the machine may grant more.
    constexpr rlimit kNone{0, 0};
    for (const auto limit : {RLIMIT_CORE, RLIMIT_RTPRIO, RLIMIT_NICE}) setrlimit(limit, &kNone);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--open") return hearth::agent::openFor(argv[2]);
    if (argc == 3 && std::string_view(argv[1]) == "--relay") return hearth::agent::relay(argv[2]);
    if (argc == 4 && std::string_view(argv[1]) == "--make-identity")
        return hearth::agent::makeIdentity(argv[2], argv[3]);
    if (argc == 5 && std::string_view(argv[1]) == "--begin-pod")
        return hearth::agent::beginPod(argv[2], argv[3], argv[4]);
    Settings settings;
    if (const int status = hearth::agent::readSettings(argc, argv, settings); status >= 0)
        return status;
    takeStandardFds();
    // One arena, and freed memory is given back: the agent and its tenant share a small cgroup.
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 65'536);
    mallopt(M_TRIM_THRESHOLD, 131'072);
    confine(settings);
    // Needed for any mount mode: runc gives a tmpfs the mode of the folder beneath it.
    if (settings.init && settings.keep_identity) chmod(settings.root.c_str(), 0700);
    std::optional<hearth::agent::secure::AgentIdentity> identity;
    if (settings.server) {
        identity = hearth::agent::takeIdentity(settings.identity.c_str());
        if (!identity) return 2;
    }
    Fd signals = prepareSignals();
    Fd handover;
    Fd listening = listener(settings, handover);
    umask(022);
    if (!listening || !signals) {
        std::fputs("hearth-agent: no listening socket\n", stderr);
        return 2;
    }
    hearth::agent::Agent agent(settings, std::move(identity), std::move(listening),
                               std::move(signals));
    if (handover && send(handover.get(), "", 1, MSG_NOSIGNAL) < 0) return 2;  // the server is gone
    handover.reset();
    const int status = agent.run();
    std::fflush(nullptr);
    _exit(status);  // worker threads end with the process
}
