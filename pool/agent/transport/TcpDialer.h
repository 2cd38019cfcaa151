#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "pool/agent/secure/Handshake.h"
#include "pool/agent/transport/AgentLink.h"

namespace hearth::agent {

/// The address of one Pod's agent, and the identity that it must prove.
struct PodAgent {
    std::string address;  ///< IPv4 or IPv6, no name: a lookup could block, or be answered falsely
    std::uint16_t port = 0;
    std::string pod_uid;
    secure::AgentPublicKey identity;
};

/// Makes authenticated connections to one agent over TCP; an AgentDialer. Thread-safe.
class TcpDialer {
public:
    /// `key` must outlive it. `timeout` covers connecting and the handshake together.
    TcpDialer(const secure::ServerKey& key, PodAgent agent, std::chrono::milliseconds timeout);

    /// Blocks. Throws std::system_error: timed_out, permission_denied if the peer is not this agent
    /// or refuses this server, and the errors of connect().
    AgentLink operator()(secure::Purpose purpose) const;

private:
    const secure::ServerKey& key_;
    const PodAgent agent_;
    const std::chrono::milliseconds timeout_;
};

}  // namespace hearth::agent
