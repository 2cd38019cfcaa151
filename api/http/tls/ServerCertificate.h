#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "api/http/tls/TlsFiles.h"
#include "base/Mutex.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::api {

/// The certificate that a server shows, read again when its files have changed. TLS 1.3, and 1.2
/// with authenticated encryption only. Thread-safe.
class ServerCertificate {
public:
    /// Throws Error(InvalidArgument) with the file and its fault.
    ServerCertificate(TlsFiles files, metrics::Metrics& metrics, metrics::Log& log);

    /// For new connections; open connections keep theirs.
    std::shared_ptr<SSL_CTX> context() const;
    /// Checks the files. Unusable new ones are ignored, and the log gives the reason once.
    void refresh();

private:
    /// A text that changes with the files, also with the links of a mounted Secret.
    std::string fingerprint() const;
    std::shared_ptr<SSL_CTX> load();

    const TlsFiles files_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    std::string seen_;  ///< used only by the refreshing thread
    mutable Mutex mutex_;
    std::shared_ptr<SSL_CTX> context_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::api
