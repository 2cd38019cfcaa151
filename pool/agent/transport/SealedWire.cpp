#include "pool/agent/transport/SealedWire.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace hearth::agent {
namespace {

constexpr std::size_t kReadAtOnce = 65'536;
constexpr std::size_t kSealAtOnce = 65'536;

/// Returns the first bytes of all parts together, for the records of one send.
std::string gathered(const iovec* parts, std::size_t count) {
    std::string plain;
    for (std::size_t i = 0; i < count && plain.size() < kSealAtOnce; ++i) {
        plain.append(static_cast<const char*>(parts[i].iov_base),
                     std::min(parts[i].iov_len, kSealAtOnce - plain.size()));
    }
    return plain;
}

}  // namespace

SealedWire::SealedWire(secure::Session session) : session_(std::move(session)) {}

SealedWire::Received SealedWire::receive(int socket, std::string& plain) {
    std::array<char, kReadAtOnce> bytes;
    const ssize_t n = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? Received::Nothing : Received::Failed;
    using State = secure::Opener::State;
    if (n == 0) {
        return session_.opener->state() == State::Ended ? Received::Ended : Received::Cut;
    }
    switch (session_.opener->open({bytes.data(), static_cast<std::size_t>(n)}, plain)) {
        case State::Open:
            return Received::Bytes;
        case State::Broken:
            return Received::Forged;
        case State::Ended:
            break;
    }
    return plain.empty() ? Received::Ended : Received::Bytes;
}

bool SealedWire::flush(int socket) {
    while (pending()) {
        const ssize_t n =
            ::send(socket, wire_.data() + sent_, wire_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        sent_ += static_cast<std::size_t>(n);
    }
    wire_.clear();
    sent_ = 0;
    return true;
}

ssize_t SealedWire::send(int socket, const iovec* parts, std::size_t count) {
    if (!flush(socket)) return -1;
    const std::string plain = gathered(parts, count);
    session_.sealer->seal(plain, wire_);
    // Bytes that the socket does not take now are pending; an error shows in the next call.
    (void)flush(socket);
    return static_cast<ssize_t>(plain.size());
}

void SealedWire::finish(int socket) {
    if (pending()) return;
    session_.sealer->finish(wire_);
    (void)flush(socket);
}

}  // namespace hearth::agent
