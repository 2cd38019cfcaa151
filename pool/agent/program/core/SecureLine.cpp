#include "pool/agent/program/core/SecureLine.h"

#include <sys/socket.h>

#include <cerrno>

namespace hearth::agent {

SecureLine::SecureLine(const secure::ServerPublicKey& server, const secure::AgentIdentity& identity,
                       std::string_view pod_uid)
    : handshake_(server, identity, pod_uid), wire_(handshake_.greeting()) {}

bool SecureLine::receive(std::string_view wire, std::string& plain) {
    if (!proven()) {
        const secure::Progress progress = handshake_.receive(wire, wire_);
        if (progress != secure::Progress::Done) return progress == secure::Progress::Waiting;
        session_ = handshake_.take();
    }
    return session_.opener->open(wire, plain) != secure::Opener::State::Broken;
}

bool SecureLine::ended() const noexcept {
    return proven() && session_.opener->state() == secure::Opener::State::Ended;
}

bool SecureLine::flush(int socket) {
    while (queued() > 0) {
        const ssize_t n =
            ::send(socket, wire_.data() + sent_, queued(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        sent_ += static_cast<std::size_t>(n);
    }
    wire_.clear();
    sent_ = 0;
    return true;
}

}  // namespace hearth::agent
