#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <string>

#include "pool/agent/secure/Handshake.h"

namespace hearth::agent {

/// What stands between frames and the TCP socket of a connection whose handshake is done. Neither
/// half blocks. One thread at a time receives, and one at a time sends; these may be two.
class SealedWire {
public:
    explicit SealedWire(secure::Session session);

    enum class Received {
        Bytes,    ///< something came; `plain` may have got none, where no record is complete
        Nothing,  ///< nothing is there now
        Ended,    ///< the agent has said its last word
        Cut,      ///< the connection ended without one
        Forged,   ///< somebody in between changed, repeated or left out bytes
        Failed,   ///< as errno says
    };
    /// Reads once, and appends the plain bytes of the records that are complete.
    Received receive(int socket, std::string& plain);

    /// Takes plain bytes as sendmsg() does, and sends what the socket takes of them. -1 with errno,
    /// EAGAIN while earlier bytes are pending, which it tries first; no parts: these alone.
    ssize_t send(int socket, const iovec* parts, std::size_t count);
    /// Whether taken bytes wait for the socket: send() is to be called again.
    bool pending() const noexcept { return sent_ < wire_.size(); }
    /// Says the last word, if nothing is pending. As a sender.
    void finish(int socket);

private:
    bool flush(int socket);

    secure::Session session_;
    std::string wire_;
    std::size_t sent_ = 0;
};

}  // namespace hearth::agent
