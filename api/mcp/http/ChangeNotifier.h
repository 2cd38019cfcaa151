#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/http/Handler.h"
#include "api/mcp/http/FileWatch.h"
#include "api/mcp/http/LogLevels.h"
#include "api/mcp/protocol/JsonRpc.h"
#include "api/mcp/server/Catalog.h"
#include "base/Mutex.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The changes that a stream wants to be notified of.
struct Interest {
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::set<std::string> uris{};

    /// Returns the interest of a session's stream: each list that its endpoint declares to change.
    /// Its URIs are the session's subscriptions.
    static Interest declared(const Catalog& catalog) {
        return {catalog.tools_change, catalog.prompts_change, catalog.resources.has_value(), {}};
    }
};

/// The streams that clients keep open to receive changes: GET of a session, HTTP+SSE, and
/// subscriptions/listen. One thread for all of them turns the server's events into notifications,
/// at most one of a kind per second and stream, and only for things its tenant may see. Files of
/// workspaces are compared (FileWatch). Sessions that want log messages are warned of workspaces
/// that end soon. Without streams the thread has no work. Thread-safe.
class ChangeNotifier {
public:
    ChangeNotifier(const controller::Services& services, const LogLevels& levels);
    ChangeNotifier(const ChangeNotifier&) = delete;
    ChangeNotifier& operator=(const ChangeNotifier&) = delete;

    struct Listener {
        controller::Principal who;
        Interest interest;
        std::string session{};  ///< empty: none; a session has one stream, the newest
        Json subscription{};    ///< the id that every notification names; null: none
        Json farewell{};        ///< the last message if the server ends the stream; null: none
        /// The watches of the files among its URIs (watch()).
        std::vector<std::shared_ptr<void>> watches{};
    };
    /// Keeps `stream` until the client or the server ends it. `stop` is the server's.
    void follow(const std::shared_ptr<api::Stream>& stream, Listener listener,
                std::stop_token stop);

    /// Subscribes a session to a resource; false if the session, or the workspace of a file, has
    /// no more places. A restart forgets subscriptions; a tenant with too many sessions loses the
    /// subscriptions of one of them. Asks the agent about a file.
    bool subscribe(const controller::Principal& who, const std::string& session,
                   const std::string& uri);
    /// Watches a file for a listener; nullopt if its workspace has no more places. A null pointer
    /// if the URI is not a file's.
    std::optional<std::shared_ptr<void>> watch(const controller::Principal& who,
                                               const std::string& uri);
    void unsubscribe(const std::string& session, const std::string& uri);
    /// Ends a session's stream and forgets its subscriptions.
    void endSession(const std::string& session);

    /// Sends what has changed so far on the caller's own streams: before the result of the call
    /// that changed it, as a client may end with the result.
    void tellCaller(const controller::Principal& who, const std::string& session);

    /// Notifies every interested stream that the tools or the prompts have changed.
    void toolsChanged();
    void promptsChanged();

    /// The most sessions of one tenant with subscriptions, and the most URIs of each.
    static constexpr std::size_t kMaxSessions = 1'000;
    static constexpr std::size_t kMaxUris = 100;

private:
    struct Followed;
    /// Wakes the thread; also owned by the callbacks that other threads run.
    struct Bell {
        Mutex mutex;
        StoppableCondition rung;
        bool ringing HEARTH_GUARDED_BY(mutex) = false;
        void ring();
    };

    void loop(const std::stop_token& stop);
    /// Handles the events since the last call; true if a notification has to wait.
    bool work();
    void dropClosed();
    void takeEvents() HEARTH_EXCLUDES(taking_);
    void take(const controller::Event& event);
    std::uint64_t newestEvent() const;
    /// True if a stream of the tenant may want to know that an execution has ended.
    bool wantsLogs(const std::string& tenant);
    /// Marks the changes to send on the tenant's streams (empty: on all streams).
    void mark(const std::string& tenant, bool tools, bool resources, const std::string& uri)
        HEARTH_REQUIRES(mutex_);
    /// Adds a log message for the sessions of the tenant that want warnings.
    void warn(const std::string& tenant, const std::string& text);
    /// Sends the notifications that are due; true if one has to wait.
    bool tell() HEARTH_REQUIRES(mutex_);
    /// Marks a watched file as changed.
    void fileChanged(const std::string& tenant, const std::string& uri);
    bool wants(const Followed& followed, const std::string& uri) const HEARTH_REQUIRES(mutex_);

    const controller::Services& services_;
    const LogLevels& levels_;
    const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
    Mutex taking_;  ///< held while events are read, so that each is read once; before mutex_
    Mutex mutex_;   ///< the front's thread waits for it, so it is held only for work in memory
    std::list<std::shared_ptr<Followed>> followed_ HEARTH_GUARDED_BY(mutex_);
    struct Subscribed {
        std::string tenant;
        std::map<std::string, std::shared_ptr<void>> uris;  ///< with the watch of a file
    };
    std::map<std::string, Subscribed> subscriptions_ HEARTH_GUARDED_BY(mutex_);  ///< by session
    /// The number of sessions in subscriptions_, by tenant.
    std::map<std::string, std::size_t> subscribed_by_ HEARTH_GUARDED_BY(mutex_);
    using Forgotten = std::map<std::string, Subscribed>::node_type;
    /// The result must be destroyed without the lock, because it holds the watches of files.
    Forgotten forget(std::map<std::string, Subscribed>::iterator session) HEARTH_REQUIRES(mutex_);
    std::shared_ptr<void> events_ HEARTH_GUARDED_BY(mutex_);  ///< null without streams
    std::uint64_t since_ HEARTH_GUARDED_BY(mutex_) = 0;       ///< the last event taken
    FileWatch files_;
    std::jthread thread_;
};

}  // namespace hearth::mcp
