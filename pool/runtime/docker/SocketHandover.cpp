#include "pool/runtime/docker/SocketHandover.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/Error.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/sys/Files.h"

namespace hearth::pool::docker {
namespace {

constexpr auto kHandoverLook = std::chrono::milliseconds(500);

bool readable(int fd, std::chrono::milliseconds limit) {
    pollfd polled{fd, POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(limit.count()));
    if (ready < 0 && errno != EINTR) throwErrno("poll");
    return ready > 0;
}

void waitReadable(int fd, TimePoint until, const std::function<void()>& alive) {
    while (!readable(fd, kHandoverLook)) {
        alive();
        if (SystemClock().now() >= until) {
            throw Error(ErrorCode::Deadline, "the agent of a new sandbox does not answer");
        }
    }
}

void sendDescriptor(int connection, int fd) {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (::sendmsg(connection, &message, MSG_NOSIGNAL) != 1) throwErrno("sendmsg", "agent");
}

}  // namespace

SocketHandover::SocketHandover(std::string folder) : folder_(std::move(folder)) {
    // The container's user is a different one here; only the server may enter the folder above.
    if (!sys::makeDirectory(folder_, 0755)) {
        throw Error(ErrorCode::Conflict, "the sandbox exists already");
    }
    try {
        socket_ = listenAt(folder_ + "/socket", 0666);
    } catch (...) {
        sys::removeTree(folder_);
        throw;
    }
}

SocketHandover::~SocketHandover() {
    ::unlink((folder_ + "/socket").c_str());
    ::rmdir(folder_.c_str());  // the next sweep finds leftovers
}

void SocketHandover::give(int listening, TimePoint until, const std::function<void()>& alive) {
    waitReadable(socket_.get(), until, alive);
    const Fd agent(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!agent) throwErrno("accept", "agent");
    sendDescriptor(agent.get(), listening);
    waitReadable(agent.get(), until, alive);
    char byte = 0;
    if (::recv(agent.get(), &byte, 1, 0) != 1) {
        throw std::runtime_error("the agent of a new sandbox ended at once");
    }
}

}  // namespace hearth::pool::docker
