#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "pool/runtime/kubernetes/client/ClusterAccess.h"
#include "pool/runtime/kubernetes/client/KubeError.h"

namespace hearth::pool::kubernetes {

/// The end of a stream that had begun.
enum class WatchEnd {
    Clean,     ///< the server ended it between two lines
    Abrupt,    ///< the connection broke, or the last line is incomplete
    Silent,    ///< no bytes for too long
    LongLine,  ///< a line exceeds the bound
    Refused,   ///< on_line returned false
    Stopped,   ///< stop() was called
};

/// The connection of one watch. Each resource has one, with one stream of lines at a time. One
/// thread calls run(), any thread stop().
class WatchConnection {
public:
    /// `access` must outlive it.
    explicit WatchConnection(ClusterAccess& access) : access_(access) {}

    struct Limits {
        std::chrono::milliseconds answer{30'000};  ///< until the stream begins, or is refused
        std::chrono::milliseconds silence{0};      ///< the longest pause between two bytes
    };
    struct Listener {
        std::function<void()> on_open;                  ///< a stream begins
        std::function<bool(std::string_view)> on_line;  ///< false ends the stream
    };

    /// Gets `target` as a stream. Returns an error if no stream began; after a 401, tries once more
    /// with credentials that were read again. Exceptions of the listener pass through.
    KubeResult<WatchEnd> run(const std::string& target, const Limits& limits,
                             const Listener& listener);
    /// Ends run() soon, also a later one. Permanent.
    void stop() noexcept;
    bool stopped() const noexcept { return stop_; }
    /// The flag that stop() sets, for other calls of the same thread.
    const std::atomic<bool>& stopFlag() const noexcept { return stop_; }

private:
    struct Exchange;
    void attempt(Exchange& exchange, const Listener& listener,
                 const ClusterCredentials& credentials);
    /// The client for these credentials.
    http::HttpClient& clientFor(const ClusterCredentials& credentials);

    ClusterAccess& access_;
    std::atomic<bool> stop_{false};
    std::uint64_t tls_version_ = 0;
    Mutex mutex_;  ///< run() alone changes client_, so it reads without the lock
    std::optional<http::HttpClient> client_;
};

}  // namespace hearth::pool::kubernetes
