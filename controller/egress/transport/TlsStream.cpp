#include "controller/egress/transport/TlsStream.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <climits>
#include <new>

namespace hearth::egress {
namespace {

constexpr std::size_t kTlsPiece = 16U << 10U;

int sizeOf(std::size_t n) {
    return static_cast<int>(std::min<std::size_t>(n, INT_MAX));
}

}  // namespace

TlsStream::TlsStream(SSL_CTX& server, ByteStream& below, std::string_view first,
                     std::chrono::milliseconds patience)
    : below_(below), ssl_(::SSL_new(&server)) {
    BIO* const in = ::BIO_new(::BIO_s_mem());
    BIO* const out = ::BIO_new(::BIO_s_mem());
    if (ssl_ == nullptr || in == nullptr || out == nullptr) {
        ::BIO_free(in);
        ::BIO_free(out);
        throw std::bad_alloc();
    }
    ::SSL_set_bio(ssl_.get(), in, out);  // owns both
    ::BIO_write(in, first.data(), sizeOf(first.size()));
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        ::ERR_clear_error();
        const int done = ::SSL_accept(ssl_.get());
        flush(patience);
        if (done == 1) return;
        if (::SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ || !feed(until)) {
            throw StreamBroken("the client refuses our TLS");
        }
    }
}

std::size_t TlsStream::read(char* into, std::size_t room, std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        ::ERR_clear_error();
        const int n = ::SSL_read(ssl_.get(), into, sizeOf(room));
        flush(patience);
        if (n > 0) return static_cast<std::size_t>(n);
        const int why = ::SSL_get_error(ssl_.get(), n);
        if (why == SSL_ERROR_ZERO_RETURN) return 0;
        if (why != SSL_ERROR_WANT_READ) throw StreamBroken("TLS broke");
        // Many clients close without a notice; a truncated request is noticed by its length.
        if (!feed(until)) return 0;
    }
}

void TlsStream::write(std::string_view bytes, std::chrono::milliseconds patience) {
    while (!bytes.empty()) {
        ::ERR_clear_error();
        // The library writes to memory, so it accepts all of it.
        const int n =
            ::SSL_write(ssl_.get(), bytes.data(), sizeOf(std::min(bytes.size(), kTlsPiece)));
        if (n <= 0) throw StreamBroken("TLS broke");
        bytes.remove_prefix(static_cast<std::size_t>(n));
        flush(patience);
    }
}

void TlsStream::end(std::chrono::milliseconds patience) {
    ::ERR_clear_error();
    ::SSL_shutdown(ssl_.get());
    flush(patience);
}

void TlsStream::flush(std::chrono::milliseconds patience) {
    std::array<char, kTlsPiece> piece;
    int n = 0;
    while ((n = ::BIO_read(::SSL_get_wbio(ssl_.get()), piece.data(), sizeOf(piece.size()))) > 0) {
        below_.write({piece.data(), static_cast<std::size_t>(n)}, patience);
    }
}

bool TlsStream::feed(std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw StreamBroken("the other side is slow");
    std::array<char, kTlsPiece> piece;
    const std::size_t n = below_.read(piece.data(), piece.size(), left);
    if (n > 0) ::BIO_write(::SSL_get_rbio(ssl_.get()), piece.data(), sizeOf(n));
    return n > 0;
}

}  // namespace hearth::egress
