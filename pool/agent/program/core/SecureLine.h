#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "pool/agent/secure/Handshake.h"

namespace hearth::agent {

/// What stands between a connection and its TCP socket: the handshake, afterwards the records. On
/// the loop's thread.
class SecureLine {
public:
    /// The keys outlive it. Its greeting is queued at once.
    SecureLine(const secure::ServerPublicKey& server, const secure::AgentIdentity& identity,
               std::string_view pod_uid);

    /// Whether the peer is the server.
    bool proven() const noexcept { return session_.sealer != nullptr; }
    /// What the server wants of this connection; once it is proven.
    secure::Purpose purpose() const noexcept { return session_.purpose; }

    /// Takes bytes of the socket, and appends those of the records in them. False: close without a
    /// word.
    bool receive(std::string_view wire, std::string& plain);
    /// Whether the server has said its last word.
    bool ended() const noexcept;

    /// Queues bytes as records; only once it is proven.
    void send(std::string_view plain) { session_.sealer->seal(plain, wire_); }
    /// Queues our last word.
    void finish() { session_.sealer->finish(wire_); }
    /// Sends what is queued as far as the socket takes it. False with errno if something is left.
    bool flush(int socket);
    std::size_t queued() const noexcept { return wire_.size() - sent_; }

private:
    secure::AgentHandshake handshake_;
    secure::Session session_;
    std::string wire_;
    std::size_t sent_ = 0;
};

}  // namespace hearth::agent
