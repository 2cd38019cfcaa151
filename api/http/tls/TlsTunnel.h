#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

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
    TlsTunnel(Fd client, Fd plain, std::shared_ptr<SSL_CTX> context)
        : client_(std::move(client)), plain_(std::move(plain)), context_(std::move(context)) {}

    /// Moves what can be moved. Throws std::bad_alloc.
    State move(TimePoint now);
    /// Whether the client has agreed on a key.
    bool shaken() const noexcept { return shaken_; }
    /// Whether the front has closed it, and so counts it no more.
    bool leaving() const noexcept { return front_left_; }
    /// An end that takes too long: a client that does not read the last bytes, or does not close.
    bool overdue(TimePoint now) const noexcept;

    int client() const noexcept { return client_.get(); }
    int plain() const noexcept { return plain_.get(); }
    /// The events of epoll that it waits for; 0: none, whatever else may be told.
    std::uint32_t clientEvents() const noexcept;
    std::uint32_t plainEvents() const noexcept;

private:
    enum class Step { Moved, Stuck, Broken };

    void begin();
    Step shake();
    void sayTls();
    Step fromClient();
    Step toPlain();
    Step fromPlain();
    Step toClient();
    Step failure(int result);
    void lookAtFront(TimePoint now);
    void sayGoodbye(TimePoint now);

    Fd client_;
    Fd plain_;
    std::shared_ptr<SSL_CTX> context_;  ///< until the first move
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_{nullptr, ::SSL_free};
    std::string up_;       ///< read from the client
    std::string down_;     ///< for the client
    bool looked_ = false;  ///< whether it speaks TLS at all
    bool shaken_ = false;
    bool wants_read_ = false;  ///< what TLS itself waits for
    bool wants_write_ = false;
    bool client_ended_ = false;
    bool plain_ended_ = false;
    bool front_left_ = false;  ///< also before its last bytes were read
    bool told_plain_ = false;
    bool bye_ = false;
    TimePoint moved_at_{};  ///< the last bytes for the client, or our goodbye
};

}  // namespace hearth::api
