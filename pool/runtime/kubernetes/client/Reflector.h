#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "base/Texts.h"
#include "pool/runtime/kubernetes/client/Backoff.h"
#include "pool/runtime/kubernetes/client/KubeError.h"
#include "pool/runtime/kubernetes/client/KubeResource.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/WatchConnection.h"
#include "pool/runtime/kubernetes/client/WatchEvent.h"

namespace hearth::pool::kubernetes {

/// The reason for another list or watch; a label of metrics.
enum class RestartReason { Ended, Broken, Silent, Expired, Ahead, Refused, Throttled, Unreadable };
inline constexpr Texts<RestartReason, 8> kRestartReasons{
    {"ended", "broken", "silent", "expired", "ahead", "refused", "throttled", "unreadable"}};

/// The state of the cache compared with the API server.
struct ReflectorCondition {
    enum class State {
        Starting,      ///< no list has arrived yet
        Following,     ///< the cache matches the server
        Missing,       ///< the kind does not exist: its CRD is not installed
        Forbidden,     ///< RBAC lacks a verb
        Unauthorized,  ///< the credentials are refused
        Behind,        ///< the server is away, slow, or not understood
    };
    State state = State::Starting;
    std::string message = {};  ///< the last failure
    WallTime since = {};

    bool operator==(const ReflectorCondition& other) const {
        return state == other.state && message == other.message;
    }
};

struct ReflectorOptions {
    std::string label_selector = {};
    std::string field_selector = {};
    unsigned page = 500;  ///< objects per page of a list
    /// The server ends each watch after a random time between these two.
    std::chrono::seconds shortest_watch{300};
    std::chrono::seconds longest_watch{600};
    /// A watch that is silent this much longer than its time is given up.
    std::chrono::milliseconds patience{30'000};
    std::chrono::milliseconds list_timeout{60'000};
    /// The time limit for the beginning of a watch. The server answers before the first event.
    std::chrono::milliseconds answer_timeout{30'000};
    /// Returns numbers from 0 to below 1; empty: uses the kernel's.
    std::function<double()> random = {};
    /// Called by the thread of step(), for metrics; may be empty.
    std::function<void(RestartReason)> on_restart = {};
    /// Called by the thread of step() when the condition has changed; may be empty.
    std::function<void(const ReflectorCondition&)> on_condition = {};
};

/// Keeps a cache equal to one resource of the API server: lists it, watches from the version of the
/// list, and lists again only if a watch cannot continue. Comparing lists finds objects that were
/// deleted in between. Versions are only compared for equality.
///
/// One thread calls step() or run(); any thread may call stop() and condition(). The rules come
/// from client-go's reflector and from "Efficient detection of changes" in Kubernetes' API
/// concepts.
class Reflector {
public:
    /// All references must outlive it.
    Reflector(KubernetesClient& client, KubeResource resource, ObjectCache& cache,
              const Clock& clock, ReflectorOptions options = {});

    /// Does one list, or one watch to its end; returns the delay before the next call.
    std::chrono::nanoseconds step();
    /// Steps until a stop is requested, or stop() is called.
    void run(const std::stop_token& stop);
    /// Ends step() and run() soon, for good.
    void stop() noexcept;

    ReflectorCondition condition() const;
    /// True if the cache has been filled, and the kind still exists.
    bool ready() const;

private:
    /// The next action of step().
    enum class Next {
        ListLatest,     ///< consistent, in pages
        ListAtVersion,  ///< at least version_; from the server's cache
        ListWhole,      ///< consistent, on one page: the pages expired while they were read
        Watch,
    };
    /// The results of one watch so far.
    struct Watched {
        std::optional<TimePoint> opened = {};                     ///< when the stream began
        bool events = false;                                      ///< some line was understood
        bool unreadable = false;                                  ///< a line was not understood
        std::optional<KubeError> failure = {};                    ///< of an ERROR event
        std::optional<std::map<std::string, Json>> initial = {};  ///< of a streamed list, by key
    };
    using Delay = std::chrono::nanoseconds;

    bool streams() const;
    Delay list();
    Delay listFailed(const KubeError& error);
    Delay watch();
    std::string watchTarget(bool streamed, std::chrono::seconds length) const;
    void opened(Watched& watched);
    /// False: ends the watch.
    bool take(Watched& watched, std::string_view line);
    void apply(Watched& watched, WatchEvent event);
    void applyInitial(Watched& watched, WatchEvent event);
    Delay watchEnded(const Watched& watched, WatchEnd end);
    Delay watchFailed(const Watched& watched, const KubeError& error);
    Delay internalError(const KubeError& error);
    Delay relist(RestartReason reason, Delay delay);
    /// Called after a list; `version` is the list's.
    void listed(std::vector<Json> items, std::string version);

    /// Returns the delay after a failure, at least as long as the server demands.
    Delay backoff(const KubeError* error = nullptr);
    bool lived(const Watched& watched) const;
    void restarted(RestartReason reason) const;
    void follow();
    void fail(const KubeError& error);
    void fail(ReflectorCondition::State state, const std::string& message);
    void become(ReflectorCondition condition);

    KubernetesClient& client_;
    const KubeResource resource_;
    ObjectCache& cache_;
    const Clock& clock_;
    const ReflectorOptions options_;
    WatchConnection watch_;

    // Used by the thread of step():
    Next next_ = Next::ListLatest;
    std::string version_;
    Backoff backoff_;
    std::optional<TimePoint> healthy_since_;   ///< no failure since then
    std::optional<TimePoint> internal_since_;  ///< the first of consecutive 500s
    unsigned ahead_ = 0;                       ///< consecutive answers that version_ is too large
    unsigned unfinished_streams_ = 0;          ///< consecutive streamed lists that broke off
    bool settled_ = false;  ///< after the list, a watch has lived, or has had an event

    mutable Mutex mutex_;
    Condition wake_;
    ReflectorCondition condition_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::kubernetes
