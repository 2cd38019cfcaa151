#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "controller/egress/transport/ByteStream.h"

namespace hearth::egress {

/// The server's end of TLS over another stream, which must outlive it. Not thread-safe.
class TlsStream final : public ByteStream {
public:
    /// Does the handshake; `first` is what was already read. Throws StreamBroken.
    TlsStream(SSL_CTX& server, ByteStream& below, std::string_view first,
              std::chrono::milliseconds patience);

    std::size_t read(char* into, std::size_t room, std::chrono::milliseconds patience) override;
    void write(std::string_view bytes, std::chrono::milliseconds patience) override;
    /// Tells the other side that nothing more follows, if it still listens.
    void end(std::chrono::milliseconds patience);

private:
    struct Free {
        void operator()(SSL* ssl) const { ::SSL_free(ssl); }
    };
    /// Sends the bytes that the library has produced.
    void flush(std::chrono::milliseconds patience);
    /// Feeds the library until `until`; false at the end of the stream below.
    bool feed(std::chrono::steady_clock::time_point until);

    ByteStream& below_;
    std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace hearth::egress
