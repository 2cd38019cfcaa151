#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <string>

#include "pool/agent/secure/Handshake.h"

namespace hearth::agent {

/// The layer between frames and the TCP socket of a connection whose handshake is done. Neither
/// half blocks. One thread at a time receives, and one at a time sends; these may be two.
class SealedWire {
public:
    explicit SealedWire(secure::Session session);

    enum class Received {
        Bytes,    ///< bytes came; `plain` may have got none, if no record is complete
        Nothing,  ///< nothing is there now
        Ended,    ///< the agent has sent its last record
        Cut,      ///< the connection ended without the last record
        Forged,   ///< a third party changed, repeated or left out bytes
        Failed,   ///< errno gives the reason
    };
    /// Reads once, and appends the plain bytes of the records that are complete.
    Received receive(int socket, std::string& plain);

    /// Takes plain bytes as sendmsg() does, and sends as many as the socket takes. -1 with errno,
    /// EAGAIN while earlier bytes are pending, which it tries first; no parts: only these.
    ssize_t send(int socket, const iovec* parts, std::size_t count);
    /// True if taken bytes wait for the socket: then send() must be called again.
    bool pending() const noexcept { return sent_ < wire_.size(); }
    /// Sends the last record, if nothing is pending. For the sending thread.
    void finish(int socket);

private:
    bool flush(int socket);

    secure::Session session_;
    std::string wire_;
    std::size_t sent_ = 0;
};

}  // namespace hearth::agent
