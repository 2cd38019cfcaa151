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
    /// Throws Error(InvalidArgument) with the file and what is wrong with it.
    ServerCertificate(TlsFiles files, metrics::Metrics& metrics, metrics::Log& log);

    /// For new connections; those that are open keep theirs.
    std::shared_ptr<SSL_CTX> context() const;
    /// Looks at the files. New ones that cannot be used are left, and the log says why, once.
    void refresh();

private:
    /// A text that changes with the files, also with the links of a mounted Secret.
    std::string fingerprint() const;
    std::shared_ptr<SSL_CTX> load();

    const TlsFiles files_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    std::string seen_;  ///< of the thread that refreshes
    mutable Mutex mutex_;
    std::shared_ptr<SSL_CTX> context_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::api
