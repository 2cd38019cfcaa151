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

namespace hearth::broker {

class CurlHandle;

struct FetchRequest {
    std::string url;                   ///< http or https
    std::vector<std::string> headers;  ///< "Name: value"
    std::uint64_t max_bytes = 0;       ///< of the body; more is Refused
};

struct FetchAnswer {
    int status = 0;
    std::string content_type;
    std::string etag;
    std::optional<std::uint64_t> length;  ///< where the server tells it
    std::string url;                      ///< where it came from in the end; redirects are followed
};

/// Gets things from the package indexes the operator named, by libcurl. The operator's own hosts
/// may be anywhere; any other host, to which an index or a redirect points, is checked against the
/// DenySet by the very address that is connected to. Certificates are verified. Thread-safe.
class Fetcher {
public:
    /// `trusted` are "host:port" as Destination::text() writes them; `indexes` are the URLs that
    /// failureOf() can be asked about.
    Fetcher(DenySet deny, std::vector<std::string> trusted, std::vector<std::string> indexes,
            const Clock& clock);
    ~Fetcher();
    Fetcher(const Fetcher&) = delete;
    Fetcher& operator=(const Fetcher&) = delete;

    using Begun = std::function<void(const FetchAnswer&)>;
    /// Gives false to stop.
    using Chunk = std::function<bool(std::string_view)>;

    /// Blocks. `begun` gets the head of a 200 before its first `chunk`. Throws Refused if the
    /// server cannot be reached, is denied, stalls (30 s without progress) or sends too much. Other
    /// statuses are answers too, without their bodies.
    FetchAnswer get(const FetchRequest& request, const Begun& begun, const Chunk& chunk);
    /// The same, whole.
    std::pair<FetchAnswer, std::string> text(const FetchRequest& request);
    /// Why the last requests below one of `indexes` failed; empty: they did not, or it is long ago,
    /// or it was only one. Files that lie elsewhere do not count.
    std::string failureOf(const std::string& index) const;
    /// Ends what is under way, and all that is asked afterwards, as Refused.
    void stop() noexcept { stopped_ = true; }

private:
    struct Transfer;

    std::unique_ptr<CurlHandle> take();
    void giveBack(std::unique_ptr<CurlHandle> handle);
    FetchAnswer once(const FetchRequest& request, const std::string& url, std::string& location,
                     const Begun& begun, const Chunk& chunk);
    /// Remembers how a request to an index went; `why` is empty if all is well.
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
    /// With their connections.
    std::vector<std::unique_ptr<CurlHandle>> idle_ HEARTH_GUARDED_BY(mutex_);
};

/// A JSON page of an index, which is a stranger: bounded in size, depth and width. Throws Refused.
Json parsePage(const std::string& body);
/// `reference` as seen from `base` (RFC 3986 section 5); nullopt unless it is http or https.
std::optional<std::string> resolveUrl(const std::string& base, const std::string& reference);
/// "host:port" of a URL, as Destination::text(); nullopt if there is none.
std::optional<std::string> hostAndPort(const std::string& url);

}  // namespace hearth::broker
