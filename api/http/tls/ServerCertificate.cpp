#include "api/http/tls/ServerCertificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/Error.h"
#include "base/FileState.h"

namespace hearth::api {
namespace {

/// Ciphers of TLS 1.2: authenticated encryption, with a fresh key for each connection.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view kProtocol = "\x08http/1.1";

std::string reason() {
    const unsigned long code = ::ERR_peek_last_error();
    const char* text = ::ERR_reason_error_string(code);
    ::ERR_clear_error();
    return text == nullptr ? "OpenSSL does not say why" : text;
}

[[noreturn]] void refuse(const char* flag, const std::string& file, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, std::string(flag) + ": " + file + ": " + why)
        .hint(
            "give a certificate with its chain and its key, in PEM, that the server's user may "
            "read");
}

void requireReadable(const char* flag, const std::string& file) {
    struct stat about {};
    if (::stat(file.c_str(), &about) != 0 || ::access(file.c_str(), R_OK) != 0) {
        refuse(flag, file, std::generic_category().message(errno));
    }
}

int chooseProtocol(SSL*, const unsigned char** out, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void*) {
    unsigned char* chosen = nullptr;
    const int found = ::SSL_select_next_proto(
        &chosen, size, reinterpret_cast<const unsigned char*>(kProtocol.data()),
        static_cast<unsigned>(kProtocol.size()), offered, offered_size);
    if (found != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;  // clients then speak HTTP/1.1
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/// Seconds since 1970.
double expiryOf(SSL_CTX& context) {
    const X509* const certificate = ::SSL_CTX_get0_certificate(&context);
    std::tm time{};
    if (certificate == nullptr ||
        ::ASN1_TIME_to_tm(::X509_get0_notAfter(certificate), &time) != 1) {
        return 0;
    }
    return static_cast<double>(::timegm(&time));
}

}  // namespace

ServerCertificate::ServerCertificate(TlsFiles files, metrics::Metrics& metrics, metrics::Log& log)
    : files_(std::move(files)),
      metrics_(metrics),
      log_(log),
      seen_(fingerprint()),
      context_(load()) {}

std::shared_ptr<SSL_CTX> ServerCertificate::context() const {
    const MutexLock lock(mutex_);
    return context_;
}

void ServerCertificate::refresh() {
    std::string now = fingerprint();
    if (now == seen_) return;
    seen_ = std::move(now);
    try {
        std::shared_ptr<SSL_CTX> fresh = load();
        const MutexLock lock(mutex_);
        context_ = std::move(fresh);
    } catch (const std::exception& e) {  // the previous one stays in use
        log_.warn("tls.not_reloaded",
                  {{"error", e.what()}, {"hint", "the previous certificate stays in use"}});
        return;
    }
    log_.info("tls.reloaded", {{"certificate", files_.certificate}});
}

std::string ServerCertificate::fingerprint() const {
    return fileState(files_.certificate) + fileState(files_.key);
}

std::shared_ptr<SSL_CTX> ServerCertificate::load() {
    requireReadable("--tls-cert", files_.certificate);
    requireReadable("--tls-key", files_.key);
    ::ERR_clear_error();
    std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_server_method()), ::SSL_CTX_free);
    if (!context) throw std::bad_alloc();
    SSL_CTX* const raw = context.get();
    ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    ::SSL_CTX_set_cipher_list(raw, kCiphers);
    // HTTP itself marks the end of a request, so an end without a goodbye is a valid end.
    ::SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
    ::SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
    ::SSL_CTX_set_alpn_select_cb(raw, chooseProtocol, nullptr);
    // Nobody can type the password of a key.
    ::SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });
    if (::SSL_CTX_use_certificate_chain_file(raw, files_.certificate.c_str()) != 1) {
        refuse("--tls-cert", files_.certificate, reason());
    }
    if (::SSL_CTX_use_PrivateKey_file(raw, files_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        ::SSL_CTX_check_private_key(raw) != 1) {
        refuse("--tls-key", files_.key, reason());
    }
    const double expiry = expiryOf(*raw);
    metrics_.tlsExpiry(expiry);
    if (expiry < static_cast<double>(std::time(nullptr))) {
        log_.warn("tls.expired", {{"certificate", files_.certificate},
                                  {"hint", "clients refuse it; put a new one in its place"}});
    }
    return context;
}

}  // namespace hearth::api
