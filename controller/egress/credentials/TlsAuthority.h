#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/Mutex.h"

namespace hearth::egress {

/// A certificate authority of one workspace. Only that workspace's programs trust it, and it can
/// only sign for the hosts it was made for (RFC 5280 section 4.2.1.10). The gateway uses it to
/// terminate their TLS to those hosts. Thread-safe.
class TlsAuthority {
public:
    /// `hosts`: names and literal addresses. Throws std::runtime_error if the library refuses.
    explicit TlsAuthority(const std::vector<std::string>& hosts);
    /// Reads an authority that privatePem() wrote. Throws std::runtime_error on anything else.
    static std::unique_ptr<TlsAuthority> fromPem(const std::string& private_pem);
    ~TlsAuthority();
    TlsAuthority(const TlsAuthority&) = delete;
    TlsAuthority& operator=(const TlsAuthority&) = delete;

    /// The certificate and its key: its holder can sign for the hosts inside the sandbox.
    std::string privatePem() const;
    /// The certificate that programs trust.
    std::string certificatePem() const;

    /// TLS settings of a server, with a certificate for the host: TLS 1.2 or newer, HTTP/1.1.
    std::shared_ptr<SSL_CTX> serverFor(const std::string& host);

private:
    struct Material;
    explicit TlsAuthority(std::unique_ptr<const Material> material);

    const std::unique_ptr<const Material> material_;
    Mutex mutex_;
    std::map<std::string, std::shared_ptr<SSL_CTX>> servers_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::egress
