#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::pool::kubernetes {

/// The data that one request needs to reach the API server and authenticate there.
struct ClusterCredentials {
    std::shared_ptr<const http::TlsContext> tls = {};
    std::string authorization = {};  ///< value of the header; empty: none, or a client certificate
    /// Grows when tls or authorization changes.
    std::uint64_t version = 0;
    /// Grows when tls changes: connections with an older version are not reused.
    std::uint64_t tls_version = 0;
};

/// The access to the API server, with credentials that are read again while the server runs: the
/// files of a ServiceAccount are replaced about each hour. Thread-safe; no lock is held while files
/// are read.
class ClusterAccess {
public:
    /// Reads everything once. Throws Error(InvalidArgument) for a file or a URL that cannot be
    /// used, and for a token that would cross a network in clear.
    ClusterAccess(ClusterConfig config, const Clock& clock);

    /// Returns credentials at most a minute old. An unreadable file leaves the earlier values.
    ClusterCredentials credentials();
    /// Called after a 401: reads the files now. False if there is nothing newer than `used`.
    bool refused(const ClusterCredentials& used);

    const ClusterConfig& config() const noexcept { return config_; }
    /// Returns options for a client of this server: TLS, User-Agent, keepalive, and only a
    /// configured proxy. No Authorization: it may change with each request.
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
