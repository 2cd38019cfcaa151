#include "api/http/tls/TlsTunnel.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <string_view>
#include <utility>

namespace hearth::api {
namespace {

/// The most bytes that one record carries.
constexpr std::size_t kRecord = 16'384;
/// Rounds before other connections have their turn.
constexpr int kRounds = 8;
/// The server waits as long for a client that takes nothing.
constexpr std::chrono::seconds kLastBytes{30};
/// Waits for the client's own end: an earlier close could overtake the last bytes.
constexpr std::chrono::seconds kGoodbye{2};
constexpr std::string_view kSpeakTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n"
    "Connection: close\r\n\r\nThis port speaks TLS only: use a https:// URL.\n\n";

}  // namespace

void TlsTunnel::begin() {
    ssl_.reset(::SSL_new(std::exchange(context_, nullptr).get()));
    if (!ssl_ || ::SSL_set_fd(ssl_.get(), client_.get()) != 1) throw std::bad_alloc();
    ::SSL_set_accept_state(ssl_.get());
}

TlsTunnel::State TlsTunnel::move(TimePoint now) {
    // OpenSSL's error queue belongs to the thread, which serves many connections.
    ::ERR_clear_error();
    wants_read_ = wants_write_ = false;
    if (!ssl_) begin();
    if (!shaken_) {
        const Step step = shake();
        if (step == Step::Broken) return State::Over;
        if (step == Step::Stuck) return State::Waiting;
    }
    for (int round = 0; round < kRounds; ++round) {
        bool moved = false;
        for (const auto part : {&TlsTunnel::fromClient, &TlsTunnel::toPlain, &TlsTunnel::fromPlain,
                                &TlsTunnel::toClient}) {
            const Step step = (this->*part)();
            if (step == Step::Broken) return State::Over;
            moved = moved || step == Step::Moved;
            const bool ours = part == &TlsTunnel::fromPlain || part == &TlsTunnel::toClient;
            if (step == Step::Moved && ours && !bye_) moved_at_ = now;
        }
        if (plain_ended_ && down_.empty() && !bye_) sayGoodbye(now);
        if (bye_ && client_ended_) return State::Over;
        if (!moved) {
            lookAtFront(now);
            return State::Waiting;
        }
    }
    return State::Again;
}

/// Finds the end of a front while the client does not take the last bytes that precede this end.
void TlsTunnel::lookAtFront(TimePoint now) {
    if (front_left_) return;
    pollfd front{plain_.get(), POLLRDHUP, 0};
    front_left_ = plain_ended_ || (!down_.empty() && ::poll(&front, 1, 0) > 0);
    if (front_left_ && !bye_) moved_at_ = now;
}

/// Continues the handshake, unless the front has closed the connection.
TlsTunnel::Step TlsTunnel::shake() {
    pollfd server{plain_.get(), POLLRDHUP, 0};
    if (::poll(&server, 1, 0) > 0) return Step::Broken;
    char byte = 0;
    if (!looked_ && ::recv(client_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
        looked_ = true;
        if (byte >= 'A' && byte <= 'Z') {
            sayTls();
            return Step::Broken;
        }
    }
    const int result = ::SSL_do_handshake(ssl_.get());
    if (result != 1) return failure(result);
    shaken_ = true;
    return Step::Moved;
}

/// Answers a client that speaks plain HTTP. Reads its bytes before the close: else the close would
/// be a reset, which can overtake the answer.
void TlsTunnel::sayTls() {
    static_cast<void>(
        ::send(client_.get(), kSpeakTls.data(), kSpeakTls.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    ::shutdown(client_.get(), SHUT_WR);
    std::array<char, kRecord> piece;
    static_cast<void>(::recv(client_.get(), piece.data(), piece.size(), MSG_DONTWAIT));
}

/// Returns why a call of OpenSSL has not done its work.
TlsTunnel::Step TlsTunnel::failure(int result) {
    switch (::SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            wants_read_ = true;
            return Step::Stuck;
        case SSL_ERROR_WANT_WRITE:
            wants_write_ = true;
            return Step::Stuck;
        default:
            ::ERR_clear_error();
            return Step::Broken;
    }
}

TlsTunnel::Step TlsTunnel::fromClient() {
    if (client_ended_ || !up_.empty()) return Step::Stuck;
    std::array<char, kRecord> piece;
    std::size_t got = 0;
    const int result = ::SSL_read_ex(ssl_.get(), piece.data(), piece.size(), &got);
    if (result == 1) {
        if (!told_plain_) up_.assign(piece.data(), got);
        return Step::Moved;
    }
    if (::SSL_get_error(ssl_.get(), result) != SSL_ERROR_ZERO_RETURN) return failure(result);
    client_ended_ = true;
    return Step::Moved;
}

TlsTunnel::Step TlsTunnel::toPlain() {
    if (!up_.empty()) {
        const ssize_t n = ::send(plain_.get(), up_.data(), up_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Step::Stuck;
        if (n < 0) told_plain_ = true;  // the server receives nothing more
        up_.erase(0, n < 0 ? up_.size() : static_cast<std::size_t>(n));
        return Step::Moved;
    }
    if (!client_ended_ || told_plain_) return Step::Stuck;
    told_plain_ = true;
    ::shutdown(plain_.get(), SHUT_WR);
    return Step::Moved;
}

TlsTunnel::Step TlsTunnel::fromPlain() {
    if (plain_ended_ || !down_.empty()) return Step::Stuck;
    std::array<char, kRecord> piece;
    const ssize_t n = ::recv(plain_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Step::Stuck;
    if (n <= 0) {
        plain_ended_ = true;
    } else {
        down_.assign(piece.data(), static_cast<std::size_t>(n));
    }
    return Step::Moved;
}

TlsTunnel::Step TlsTunnel::toClient() {
    if (down_.empty()) return Step::Stuck;
    std::size_t sent = 0;
    const int result = ::SSL_write_ex(ssl_.get(), down_.data(), down_.size(), &sent);
    if (result != 1) return failure(result);
    down_.erase(0, sent);
    return Step::Moved;
}

void TlsTunnel::sayGoodbye(TimePoint now) {
    bye_ = true;
    moved_at_ = now;
    ::SSL_shutdown(ssl_.get());
    ::ERR_clear_error();
    ::shutdown(client_.get(), SHUT_WR);
}

bool TlsTunnel::overdue(TimePoint now) const noexcept {
    if (bye_) return now - moved_at_ > kGoodbye;
    return front_left_ && now - moved_at_ > kLastBytes;
}

std::uint32_t TlsTunnel::clientEvents() const noexcept {
    std::uint32_t events = 0;
    if (wants_read_ || (shaken_ && up_.empty() && !client_ended_)) events |= EPOLLIN;
    if (wants_write_) events |= EPOLLOUT;
    return events;
}

std::uint32_t TlsTunnel::plainEvents() const noexcept {
    if (!shaken_) return EPOLLRDHUP;
    std::uint32_t events = 0;
    if (down_.empty() && !plain_ended_) events |= EPOLLIN;
    if (!up_.empty()) events |= EPOLLOUT;
    if (!down_.empty() && !front_left_) events |= EPOLLRDHUP;
    return events;
}

}  // namespace hearth::api
