#include "pool/agent/program/interpreters/DriverChannel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace hearth::agent {

namespace {

constexpr std::size_t kMaxFds = 4;
constexpr int kRounds = 16;

}  // namespace

bool DriverChannel::open(Fd& ours, Fd& theirs) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    ours = Fd(pair[0]);
    theirs = Fd(pair[1]);
    const int on = 1;
    return setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
}

DriverChannel::DriverChannel(EventLoop& loop, DriverListener& listener, Fd socket)
    : loop_(loop), listener_(&listener), socket_(std::move(socket)) {
    loop_.add(socket_.get(), EPOLLIN, *this);
}

void DriverChannel::close() {
    if (!socket_) return;
    loop_.remove(socket_.get());
    socket_.reset();
}

void DriverChannel::write(std::string_view bytes) {
    out_ += bytes;
    flush();
}

bool DriverChannel::writeWith(std::string_view bytes, const int* fds, std::size_t count) {
    if (!socket_ || !out_.empty() || count > kMaxFds) return false;
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    return sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

bool DriverChannel::taken() const {
    int unread = 0;
    if (refused_ || !out_.empty()) return false;
    return !socket_ || (ioctl(socket_.get(), SIOCOUTQ, &unread) == 0 && unread == 0);
}

void DriverChannel::flush() {
    while (socket_ && !out_.empty()) {
        const ssize_t n =
            ::send(socket_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            out_.erase(0, static_cast<std::size_t>(n));
        } else if (errno != EINTR) {
            if (errno != EAGAIN) {  // the reading side reports the end
                refused_ = true;
                out_.clear();
            }
            break;
        }
    }
    const bool waiting = !out_.empty();
    if (socket_ && waiting != waiting_) {
        waiting_ = waiting;
        loop_.change(socket_.get(), EPOLLIN | (waiting ? EPOLLOUT : 0U), *this);
    }
}

ssize_t DriverChannel::receive(char* buffer, std::size_t size, pid_t& sender) {
    iovec part{buffer, size};
    // Room for nothing else: the kernel then closes descriptors that a tenant sends.
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    const cmsghdr* const c = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    sender = -1;
    if (c != nullptr && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
        c->cmsg_len == CMSG_LEN(sizeof(ucred))) {
        ucred credentials{};
        std::memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
        sender = credentials.pid;
    }
    return n;
}

void DriverChannel::read() {
    static char buffer[65'536];  // the loop's thread only
    for (int i = 0; i < kRounds && socket_; ++i) {
        pid_t sender = -1;
        const ssize_t n = receive(buffer, sizeof(buffer), sender);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) refused_ = true;  // ECONNRESET: the kernel dropped unread data
        if (n > 0 && one_ && driver_ < 0) driver_ = sender;
        if (n > 0 && sender != driver_ && driver_ > 0) continue;
        if (n > 0) messages_.append({buffer, static_cast<std::size_t>(n)});
        std::string_view kind;
        std::string_view payload;
        while (n > 0 && socket_ && messages_.next(kind, payload)) {
            listener_->driverSaid(*this, kind, payload);
        }
        if (socket_ && (n <= 0 || messages_.broken())) {
            close();
            return listener_->driverClosed(*this);
        }
        if (n < static_cast<ssize_t>(sizeof(buffer))) return;
    }
}

void DriverChannel::ready(std::uint32_t events) {
    if (!socket_) return;
    if ((events & EPOLLOUT) != 0) flush();
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read();
}

}  // namespace hearth::agent
