#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "controller/egress/policy/DenySet.h"

namespace hearth::egress {

class CurlHandle;

struct FetchRequest {
    std::string url;                   ///< http or https
    std::vector<std::string> headers;  ///< "Name: value"
    std::uint64_t max_bytes = 0;       ///< of the body; a longer body is Refused
    bool head = false;                 ///< requests no body
};

struct FetchAnswer {
    int status = 0;
    std::string content_type;
    std::string etag;
    std::optional<std::uint64_t> length;  ///< if the server sends it
    std::string url;                      ///< the final URL; redirects are followed
};

/// Fetches from the package indexes that the operator named, by libcurl. The operator's own hosts
/// may have any address. Any other host, from an index or a redirect, is checked against the
/// DenySet by the very address that is connected to. Certificates are verified. A login in an
/// index's URL goes to that host only. Thread-safe.
class Fetcher {
public:
    /// `trusted` are "host:port" as Destination::text() writes them; `indexes` are the URLs that
    /// failureOf() knows.
    Fetcher(DenySet deny, std::vector<std::string> trusted, std::vector<std::string> indexes,
            const Clock& clock);
    ~Fetcher();
    Fetcher(const Fetcher&) = delete;
    Fetcher& operator=(const Fetcher&) = delete;

    using Begun = std::function<void(const FetchAnswer&)>;
    /// Returns false to stop the fetch.
    using Chunk = std::function<bool(std::string_view)>;

    /// Blocks. `begun` gets the head of a 200 before its first `chunk`. Throws Refused if the
    /// server cannot be reached, is denied, stalls (30 s without progress) or sends too much. Other
    /// statuses are answers too, without their bodies.
    FetchAnswer get(const FetchRequest& request, const Begun& begun, const Chunk& chunk);
    /// The same, with the whole body as a text.
    std::pair<FetchAnswer, std::string> text(const FetchRequest& request);
    /// Why the last requests below one of `indexes` failed; empty if they succeeded, if only one
    /// failed, or if it is long ago. Files at other URLs do not count.
    std::string failureOf(const std::string& index) const;
    /// Ends all present and later requests as Refused.
    void stop() noexcept { stopped_ = true; }

private:
    struct Transfer;

    std::unique_ptr<CurlHandle> take();
    void giveBack(std::unique_ptr<CurlHandle> handle);
    /// Sets the login that an index's URL has, if `url` is at the same place and has none.
    void logIn(CurlHandle& handle, const std::string& url) const;
    FetchAnswer once(const FetchRequest& request, const std::string& url, std::string& location,
                     const Begun& begun, const Chunk& chunk);
    /// Remembers the result of a request to an index; `why` is empty for a success.
    void remember(const std::string& url, std::string why);

    const DenySet deny_;
    const std::vector<std::string> trusted_;
    const std::vector<std::string> indexes_;
    const Clock& clock_;
    std::atomic<bool> stopped_{false};
    mutable Mutex mutex_;
    struct Failing {
        std::string why;
        unsigned times = 0;  ///< in a row
        TimePoint last{};
    };
    std::map<std::string, Failing> failing_ HEARTH_GUARDED_BY(mutex_);  ///< by index
    /// Idle handles with their connections.
    std::vector<std::unique_ptr<CurlHandle>> idle_ HEARTH_GUARDED_BY(mutex_);
};

/// Parses a JSON page of an untrusted index, bounded in size, depth and width. Throws Refused.
Json parsePage(const std::string& body);
/// Resolves `reference` against `base` (RFC 3986 section 5); nullopt unless http or https.
std::optional<std::string> resolveUrl(const std::string& base, const std::string& reference);
/// Returns "host:port" of a URL, as Destination::text() does; nullopt if it has no host.
std::optional<std::string> hostAndPort(const std::string& url);

}  // namespace hearth::egress
