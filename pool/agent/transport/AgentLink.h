#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/Fd.h"
#include "pool/agent/transport/SealedWire.h"

namespace hearth::agent {

/// A new connection to an agent, before its first frame.
struct AgentLink {
    /// A Unix socket, which needs no protection.
    AgentLink(Fd socket) : fd(std::move(socket)) {}
    /// A TCP socket whose handshake is done.
    AgentLink(Fd socket, std::unique_ptr<SealedWire> wire)
        : fd(std::move(socket)), sealed(std::move(wire)) {}

    Fd fd;
    std::unique_ptr<SealedWire> sealed;  ///< null on a Unix socket
};

/// Makes a new connection to one agent. Over a network it needs the purpose, because the agent
/// limits the connection to it. Throws std::system_error. Copies call the same function.
class AgentDialer {
public:
    template <typename Call>
    requires(!std::is_same_v<std::remove_cvref_t<Call>, AgentDialer>) AgentDialer(Call call) {
        if constexpr (std::is_invocable_v<Call&, secure::Purpose>) {
            dial_ = std::move(call);
        } else {
            dial_ = [call = std::move(call)](secure::Purpose) mutable { return AgentLink(call()); };
        }
    }

    AgentLink operator()(secure::Purpose purpose) const { return dial_(purpose); }

private:
    std::function<AgentLink(secure::Purpose)> dial_;
};

}  // namespace hearth::agent
