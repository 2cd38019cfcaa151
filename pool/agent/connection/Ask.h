#pragma once

#include <string_view>
#include <system_error>

#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/connection/AgentMessages.h"

namespace hearth::agent {

/// Makes a new connection. Throws AgentLost if there is none.
inline AgentLink dial(const AgentDialer& dialer, secure::Purpose purpose) {
    try {
        return dialer(purpose);
    } catch (const std::system_error& e) {
        throw AgentLost(e.what());
    }
}

/// Runs `decode` on a message of the agent; if it does not fit, ends the connection and throws
/// AgentLost.
template <typename Decode>
auto believing(AgentConnection& connection, Decode decode) {
    try {
        return decode();
    } catch (const ProtocolError& e) {
        const std::string reason = std::string("the agent broke the protocol: ") + e.what();
        connection.kill(AgentConnection::End::Violation, reason);
        throw AgentLost(reason, Loss::Broken);
    }
}

/// Makes one call, its answer decoded on this thread. Throws AgentError, AgentLost.
template <typename Decode>
auto ask(AgentConnection& connection, std::string_view request, AgentConnection::Deadline deadline,
         Decode decode) {
    const Answer answer = connection.call(request, deadline);
    return believing(connection, [&] {
        if (answer.error) throw decodeError(answer.payload);
        return decode(parseObject(answer.payload));
    });
}

}  // namespace hearth::agent
