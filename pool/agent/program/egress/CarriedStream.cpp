#include "pool/agent/program/egress/CarriedStream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hearth::agent {

namespace {
/// The reads of one connection before others have their turn.
constexpr int kReadsInARow = 4;
constexpr std::size_t kPiece = 32'768;
constexpr std::size_t kGrantFrom = kInitialCredit / 4;
/// More unused credit than any window: the server grants credit for bytes that were never sent.
constexpr std::size_t kMostRoom = std::size_t{16} << 20U;
}  // namespace

CarriedStream::CarriedStream(EventLoop& loop, Connection& connection, std::uint32_t id, Fd socket)
    : loop_(loop), connection_(connection), id_(id), socket_(std::move(socket)) {}

CarriedStream::~CarriedStream() {
    detach();
}

void CarriedStream::data(std::string_view bytes) {
    if (server_ended_ || out_.size() + bytes.size() > kInitialCredit) {
        return connection_.closeAfterFlush();  // a client that ignores its window
    }
    out_.append(bytes);
    write();
}

void CarriedStream::end() {
    server_ended_ = true;
    write();
}

void CarriedStream::credit(std::uint32_t bytes) {
    room_ = std::min(room_ + bytes, kMostRoom);
    watch();
}

void CarriedStream::detach() {
    if (!socket_) return;
    if (watched_ != 0) loop_.remove(socket_.get());
    watched_ = 0;
    if (!through_) {
        const linger at_once{1, 0};
        setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    socket_.reset();
}

void CarriedStream::ready(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) write();
    if (socket_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive();
}

void CarriedStream::receive() {
    char piece[kPiece];
    for (int i = 0; i < kReadsInARow && room_ > 0 && !tenant_ended_ && connection_.roomy(); ++i) {
        const ssize_t n = recv(socket_.get(), piece, std::min(room_, sizeof(piece)), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (n < 0) {
            connection_.fail(id_, "BROKEN", "the tenant's connection broke");
            return connection_.flush();
        }
        if (n == 0) {
            tenant_ended_ = true;
            connection_.send(FrameType::End, id_, Channel::Bytes, {});
            break;
        }
        room_ -= static_cast<std::size_t>(n);
        connection_.send(FrameType::Data, id_, Channel::Bytes,
                         {piece, static_cast<std::size_t>(n)});
    }
    connection_.flush();
    watch();
}

void CarriedStream::write() {
    std::size_t sent = 0;
    while (sent < out_.size()) {
        const ssize_t n = ::send(socket_.get(), out_.data() + sent, out_.size() - sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) {
            connection_.fail(id_, "BROKEN", "the tenant's connection broke");
            return connection_.flush();
        }
        if (n < 0) break;
        sent += static_cast<std::size_t>(n);
    }
    out_.erase(0, sent);
    owed_ += sent;
    const bool all = server_ended_ && out_.empty();
    if (all && !through_) {
        through_ = true;
        shutdown(socket_.get(), SHUT_WR);
    }
    if (owed_ >= kGrantFrom || (all && owed_ > 0)) {
        connection_.grant(id_, static_cast<std::uint32_t>(std::exchange(owed_, 0)));
    }
    connection_.flush();
    watch();
}

/// Watches the socket only if something is wanted: the kernel would report its end for ever.
void CarriedStream::watch() {
    if (!socket_) return;
    std::uint32_t wanted = 0;
    if (room_ > 0 && !tenant_ended_ && connection_.roomy()) wanted |= EPOLLIN;
    if (!out_.empty()) wanted |= EPOLLOUT;
    if (wanted == watched_) return;
    if (watched_ == 0) {
        if (!loop_.add(socket_.get(), wanted, *this)) {
            return connection_.fail(id_, "BROKEN", "the connection cannot be watched");
        }
    } else if (wanted == 0) {
        loop_.remove(socket_.get());
    } else {
        loop_.change(socket_.get(), wanted, *this);
    }
    watched_ = wanted;
}

}  // namespace hearth::agent
