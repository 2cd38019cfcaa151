#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "controller/egress/transport/ByteStream.h"

namespace hearth::broker {

/// The server's end of TLS over another stream, which must outlive it. Not thread-safe.
class TlsStream final : public ByteStream {
public:
    /// Shakes hands; `first` was read of the connection already. Throws StreamBroken.
    TlsStream(SSL_CTX& server, ByteStream& below, std::string_view first,
              std::chrono::milliseconds patience);

    std::size_t read(char* into, std::size_t room, std::chrono::milliseconds patience) override;
    void write(std::string_view bytes, std::chrono::milliseconds patience) override;
    /// Tells the other side that nothing more comes, as far as it still listens.
    void end(std::chrono::milliseconds patience);

private:
    struct Free {
        void operator()(SSL* ssl) const { ::SSL_free(ssl); }
    };
    /// Sends what the library has made.
    void flush(std::chrono::milliseconds patience);
    /// Feeds the library, until then; false at the end of what is below.
    bool feed(std::chrono::steady_clock::time_point until);

    ByteStream& below_;
    std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace hearth::broker
