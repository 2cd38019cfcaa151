#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/http/client/Proxy.h"

namespace hearth::http {

/// Failures between a client and its server. `reason` is for callers that word their own message.
class ExchangeError : public Error {
public:
    enum class Kind {
        Connect,   ///< no connection can be made (Unavailable)
        Distrust,  ///< the server's certificate is not accepted (Unavailable)
        Lost,      ///< the connection broke (Unavailable)
        Late,      ///< the time is up (Deadline)
        Stopped,   ///< Patience::stop became true (Unavailable)
        NotHttp,   ///< the answer is not HTTP (Internal)
        TooLong,   ///< the answer exceeds its bound (PayloadTooLarge)
    };
    ExchangeError(Kind kind, const std::string& message, std::string reason = {}, int error = 0);

    Kind kind() const noexcept { return kind_; }
    const std::string& reason() const noexcept { return reason_; }
    /// The errno of a connection that cannot be made; 0 if there is none.
    int error() const noexcept { return error_; }

private:
    Kind kind_;
    std::string reason_;
    int error_;
};

/// The certificates of TLS connections, read once. Thread-safe.
class TlsContext {
public:
    /// PEM files; empty ones are not used.
    struct Files {
        std::string authority = {};
        std::string certificate = {};
        std::string key = {};
        /// Without an authority: accepts this machine's authorities, instead of any server.
        bool machine_authorities = false;
    };
    /// The same as PEM texts. Without an authority, accepts this machine's authorities.
    struct Pem {
        std::string authority = {};
        std::string certificate = {};  ///< with its chain
        std::string key = {};
    };
    /// Throws Error(InvalidArgument) with the file that cannot be used.
    explicit TlsContext(const Files& files);
    /// Throws Error(InvalidArgument) that names the text.
    explicit TlsContext(const Pem& texts);
    SSL_CTX* get() const noexcept { return context_.get(); }

private:
    TlsContext();
    /// Accepts servers that the authorities of this machine have signed.
    void trustMachine();

    std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
};

/// The address where a server listens, and how to speak to it.
struct Endpoint {
    std::string name;    ///< for messages and people
    std::string socket;  ///< path of its Unix socket; empty: host and port
    std::string host = {};
    std::uint16_t port = 0;
    const TlsContext* tls = nullptr;  ///< null: plain; outlives the connections
    std::optional<Proxy> proxy = {};  ///< between the two
    /// Breaks a TCP connection whose peer has acknowledged nothing for this long, also an idle one,
    /// with a precision of a second; zero: the kernel's own default, which takes hours.
    std::chrono::milliseconds dead_peer{0};
};

/// How long a call may take.
struct Patience {
    std::chrono::milliseconds silence{0};     ///< the longest single wait; zero: no bound
    TimePoint until = TimePoint::max();       ///< the end of all waits
    const std::atomic<bool>* stop = nullptr;  ///< ends a wait soon after it becomes true
};

/// One connection, Unix, TCP or TLS. Throws ExchangeError. Not thread-safe.
class ClientConnection {
public:
    ClientConnection(const Endpoint& endpoint, const Patience& patience);

    void write(std::string_view bytes, const Patience& patience);
    /// Reads at most `size` bytes; 0 at the end.
    std::size_t read(char* out, std::size_t size, const Patience& patience);
    /// False if bytes, or the end, have arrived already.
    bool quiet() const noexcept;

    /// The result of a call that never waits.
    struct Moved {
        std::size_t bytes = 0;
        bool ended = false;        ///< the connection has ended, for any reason
        bool wants_other = false;  ///< TLS: a read waits until it can write, or the reverse
    };
    /// For a loop that waits on fd() itself. fd() does not show bytes that TLS has read ahead, so a
    /// loop reads until it gets none.
    Moved readSome(char* out, std::size_t size) noexcept;
    Moved writeSome(std::string_view bytes) noexcept;
    int fd() const noexcept { return fd_.get(); }

private:
    /// Lets the proxy connect to the server.
    void tunnel(const Endpoint& endpoint, const Patience& patience);
    /// Returns why the handshake failed.
    ExchangeError refused(const Endpoint& endpoint) const;
    /// The result of a TLS call that returned `result`; `own`: what the call normally waits for.
    Moved movedTls(int result, int own) const noexcept;
    void connectUnix(const Endpoint& endpoint);
    void connectTcp(const Endpoint& endpoint, const Patience& patience);
    void watchPeer(std::chrono::milliseconds dead_peer) const;
    void handshake(const Endpoint& endpoint, const Patience& patience);
    /// Waits for `events`; false after a silence.
    bool ready(short events, const Patience& patience) const;
    void wait(short events, const Patience& patience) const;
    /// Waits for what a TLS call with this `result` needs; false at the end of the connection.
    bool waitTls(int result, const Patience& patience) const;
    [[noreturn]] void cannotConnect(int error) const;
    ExchangeError lost(const std::string& reason) const;

    std::string name_;
    Fd fd_;
    bool more_ = false;  ///< the last read was full, so the next one need not wait first
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
};

}  // namespace hearth::http
