#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/Clock.h"
#include "base/Fd.h"
#include "pool/runtime/docker/EngineAddress.h"

namespace hearth::pool::docker {

/// The certificates of a TLS connection, read once. Throws Error(InvalidArgument) naming the file
/// that cannot be used.
class TlsContext {
public:
    explicit TlsContext(const EngineAddress& address);
    SSL_CTX* get() const noexcept { return context_.get(); }

private:
    std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
};

/// One connection to an Engine, Unix, TCP or TLS. Every call ends by `until`, whatever the other
/// side does: Error(Deadline). Error(Unavailable) for a connection that cannot be made or breaks.
/// Not thread-safe.
class EngineStream {
public:
    /// `tls` is null for a plain connection and must outlive the stream.
    EngineStream(const EngineAddress& address, const TlsContext* tls, TimePoint until);

    /// From now on every wait ends with Error(Unavailable) soon after `stop` has become true.
    void obey(const std::atomic<bool>& stop) { stop_ = &stop; }

    void write(std::string_view bytes, TimePoint until);
    /// At most `size` bytes; 0 at the end.
    std::size_t read(char* out, std::size_t size, TimePoint until);

    /// What a call that never waits has done.
    struct Moved {
        std::size_t bytes = 0;
        bool ended = false;        ///< the connection is over, in whatever way
        bool wants_other = false;  ///< TLS: a read waits until it can write, or the reverse
    };
    /// For a loop that waits itself, on fd(). What TLS has read ahead is not seen there, so a loop
    /// reads until it gets no bytes.
    Moved readSome(char* out, std::size_t size) noexcept;
    Moved writeSome(std::string_view bytes) noexcept;
    int fd() const noexcept { return fd_.get(); }

private:
    /// Of a TLS call that gave `result`; `own` is what it waits for by nature.
    Moved movedTls(int result, int own) const noexcept;
    void connectUnix(const EngineAddress& address);
    void connectTcp(const EngineAddress& address, TimePoint until);
    void handshake(const EngineAddress& address, const TlsContext& tls, TimePoint until);
    /// Waits until the socket is ready for `events`.
    void wait(short events, TimePoint until) const;
    /// Waits for what a TLS call that gave `result` lacks; false at the end of the connection.
    bool waitTls(int result, TimePoint until) const;

    std::string name_;
    Fd fd_;
    const std::atomic<bool>* stop_ = nullptr;
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
};

}  // namespace hearth::pool::docker
