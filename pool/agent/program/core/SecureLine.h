#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "pool/agent/secure/Handshake.h"

namespace hearth::agent {

/// The layer between a connection and its TCP socket: first the handshake, then the records. On the
/// loop's thread.
class SecureLine {
public:
    /// The keys must outlive it. Its greeting is queued at once.
    SecureLine(const secure::ServerPublicKey& server, const secure::AgentIdentity& identity,
               std::string_view pod_uid);

    /// True if the peer is proven to be the server.
    bool proven() const noexcept { return session_.sealer != nullptr; }
    /// Returns the server's purpose for this connection; only once it is proven.
    secure::Purpose purpose() const noexcept { return session_.purpose; }

    /// Takes bytes of the socket, and appends the plain bytes of the records in them. False: close
    /// without an answer.
    bool receive(std::string_view wire, std::string& plain);
    /// True if the server has sent its last record.
    bool ended() const noexcept;

    /// Queues bytes as records; only once it is proven.
    void send(std::string_view plain) { session_.sealer->seal(plain, wire_); }
    /// Queues the agent's last record.
    void finish() { session_.sealer->finish(wire_); }
    /// Sends queued bytes as far as the socket takes them. False with errno if something is left.
    bool flush(int socket);
    std::size_t queued() const noexcept { return wire_.size() - sent_; }

private:
    secure::AgentHandshake handshake_;
    secure::Session session_;
    std::string wire_;
    std::size_t sent_ = 0;
};

}  // namespace hearth::agent
