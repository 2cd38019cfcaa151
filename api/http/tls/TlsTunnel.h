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

/// A client's TLS connection on one side, its plain text on the other. Holds at most one record in
/// each direction. Not thread-safe.
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

    /// Moves the bytes that can be moved. Throws std::bad_alloc.
    State move(TimePoint now);
    /// True if the client has agreed on a key.
    bool shaken() const noexcept { return shaken_; }
    /// True if the front has closed it, and so no longer counts it.
    bool leaving() const noexcept { return front_left_; }
    /// True if the end takes too long: a client does not read the last bytes, or does not close.
    bool overdue(TimePoint now) const noexcept;

    int client() const noexcept { return client_.get(); }
    int plain() const noexcept { return plain_.get(); }
    /// The epoll events that it waits for; 0: none, whatever epoll reports besides.
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
    bool looked_ = false;  ///< it is known whether it speaks TLS at all
    bool shaken_ = false;
    bool wants_read_ = false;  ///< TLS itself waits to read
    bool wants_write_ = false;
    bool client_ended_ = false;
    bool plain_ended_ = false;
    bool front_left_ = false;  ///< true even before its last bytes were read
    bool told_plain_ = false;
    bool bye_ = false;
    TimePoint moved_at_{};  ///< the last bytes for the client, or the goodbye
};

}  // namespace hearth::api
