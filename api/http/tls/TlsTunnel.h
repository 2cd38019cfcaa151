#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/Clock.h"
#include "base/Fd.h"

namespace hearth::api {

/// One client's TLS connection on the one side, its plain text on the other. Holds at most one
/// record in each direction. Not thread-safe.
class TlsTunnel {
public:
    enum class State {
        Waiting,  ///< for its sockets
        Again,    ///< there is more to move at once
        Over,
    };

    /// Both sockets are non-blocking.
    TlsTunnel(SSL_CTX& context, Fd client, Fd plain);

    /// Moves what can be moved.
    State move(TimePoint now);
    /// Whether the client has agreed on a key.
    bool shaken() const noexcept { return shaken_; }
    /// An end that takes too long: a client that does not read the last bytes, or does not close.
    bool overdue(TimePoint now) const noexcept;

    int client() const noexcept { return client_.get(); }
    int plain() const noexcept { return plain_.get(); }
    /// The events of epoll that it waits for; 0: none, whatever else may be told.
    std::uint32_t clientEvents() const noexcept;
    std::uint32_t plainEvents() const noexcept;

private:
    enum class Step { Moved, Stuck, Broken };

    Step shake();
    void sayTls();
    Step fromClient();
    Step toPlain();
    Step fromPlain();
    Step toClient();
    Step failure(int result);
    void sayGoodbye(TimePoint now);

    Fd client_;
    Fd plain_;
    const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
    std::string up_;    ///< read from the client
    std::string down_;  ///< for the client
    bool shaken_ = false;
    bool wants_read_ = false;  ///< what TLS itself waits for
    bool wants_write_ = false;
    bool client_ended_ = false;
    bool plain_ended_ = false;
    bool told_plain_ = false;
    bool bye_ = false;
    TimePoint moved_at_{};
};

}  // namespace hearth::api
