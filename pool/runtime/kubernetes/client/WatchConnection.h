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

/// How a stream that had begun came to its end.
enum class WatchEnd {
    Clean,     ///< the server ended it between two lines
    Abrupt,    ///< the connection broke, or the last line is not whole
    Silent,    ///< nothing came for too long
    LongLine,  ///< a line exceeds the bound
    Refused,   ///< on_line wanted no more
    Stopped,   ///< stop() was called
};

/// The connection of one watch: one resource has one, and a stream of lines at a time. run() is
/// called by one thread, stop() by any.
class WatchConnection {
public:
    /// `access` must outlive it.
    explicit WatchConnection(ClusterAccess& access) : access_(access) {}

    struct Limits {
        std::chrono::milliseconds answer{30'000};  ///< until the stream begins, or is refused
        std::chrono::milliseconds silence{0};      ///< the longest pause between two bytes of it
    };
    struct Listener {
        std::function<void()> on_open;                  ///< a stream begins
        std::function<bool(std::string_view)> on_line;  ///< false ends it
    };

    /// Gets `target` as a stream. An error if no stream began; a 401 makes it try once more with
    /// credentials that were read anew. Exceptions of the listener pass through.
    KubeResult<WatchEnd> run(const std::string& target, const Limits& limits,
                             const Listener& listener);
    /// Ends run() soon, also one that has not begun. For good.
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
    Mutex mutex_;  ///< only run() changes client_, so it reads it without
    std::optional<http::HttpClient> client_;
};

}  // namespace hearth::pool::kubernetes
