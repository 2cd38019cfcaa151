#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::pool::kubernetes {

/// What one request needs to reach the API server and be known there.
struct ClusterCredentials {
    std::shared_ptr<const http::TlsContext> tls = {};
    std::string authorization = {};  ///< value of the header; empty: none, or a client certificate
    /// Grows when tls or authorization changes.
    std::uint64_t version = 0;
    /// Grows when tls changes: connections of an older one are not used again.
    std::uint64_t tls_version = 0;
};

/// The way to the API server, with credentials that are read again while the server runs: files of
/// a ServiceAccount are replaced each hour or so. Thread-safe; no lock is held while files are
/// read.
class ClusterAccess {
public:
    /// Reads everything once. Throws Error(InvalidArgument) for a file or a URL that cannot be
    /// used, and for a token that would cross a network in clear.
    ClusterAccess(ClusterConfig config, const Clock& clock);

    /// Never older than a minute. A file that cannot be read any more leaves what was read before.
    ClusterCredentials credentials();
    /// To be called after a 401: reads the files now. False if there is nothing newer than `used`.
    bool refused(const ClusterCredentials& used);

    const ClusterConfig& config() const noexcept { return config_; }
    /// Options of a client of this server: TLS, User-Agent, keepalive, and no proxy that is not
    /// configured. No Authorization: it may change with each request.
    http::ClientOptions clientOptions(const ClusterCredentials& credentials) const;

private:
    /// The contents of all sources.
    struct Read {
        std::string authority;
        std::string certificate;
        std::string key;
        std::string token;
        bool sameTls(const Read& other) const;
    };
    Read readAll() const;
    void take(Read read, std::shared_ptr<const http::TlsContext> tls) HEARTH_REQUIRES(mutex_);
    void reread();

    const ClusterConfig config_;
    const bool tls_;
    const Clock& clock_;
    Mutex mutex_;
    Read read_ HEARTH_GUARDED_BY(mutex_);
    ClusterCredentials credentials_ HEARTH_GUARDED_BY(mutex_);
    TimePoint read_at_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::kubernetes
