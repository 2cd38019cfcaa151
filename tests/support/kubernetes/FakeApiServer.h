#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Json.h"
#include "tests/support/kubernetes/HttpWire.h"

namespace hearth::test {

inline constexpr const char* kPods = "/api/v1/pods";

/// An API server in this process: objects of any kind, list, watch and writes with the rules of
/// Kubernetes 1.20, and the faults that a test requests. No admission, no defaults, no controllers.
/// Thread-safe.
///
/// A collection is named by its path without a namespace, e.g. "/api/v1/pods" or
/// "/apis/coordination.k8s.io/v1/leases". It exists once it holds something, or after addKind().
class FakeApiServer {
public:
    /// `tls` empty: plain HTTP.
    explicit FakeApiServer(std::shared_ptr<SSL_CTX> tls = nullptr);
    ~FakeApiServer();
    std::string url() const { return listener_.url(); }

    void addKind(const std::string& collection);
    /// Acts as if its CRD were deleted: 404 for everything, and watches end.
    void removeKind(const std::string& collection);

    /// Creates or changes an object as if another client did; returns it as it is stored.
    Json put(const std::string& collection, Json object);
    /// Sets the answer for a path such as "/apis/hearth.dev/v1alpha1"; null: no answer.
    void putDocument(const std::string& path, const Json& document);
    /// Deletes the object; the same name may come again with another uid.
    void remove(const std::string& collection, const std::string& key);
    /// Returns the object, nullopt if there is none; key "NAMESPACE/NAME" or "NAME".
    std::optional<Json> get(const std::string& collection, const std::string& key) const;
    std::size_t count(const std::string& collection) const;
    /// Returns the version of the last change of anything.
    std::string version() const;

    /// Forgets versions older than now: watches from there, and continue tokens, are Expired.
    void compact();
    /// Acts as if the server were killed and started again: connections break, and all earlier
    /// versions are too old for a watch.
    void restart();
    /// Answers only requests with this bearer token; others get 401.
    void acceptOnly(const std::string& token);
    /// Makes it serve sendInitialEvents, which it otherwise refuses with 422 as 1.20 does.
    void streamLists();

    /// An answer that replaces the real one.
    struct Answer {
        int status = 500;
        std::string body = {};
        std::vector<std::pair<std::string, std::string>> headers = {};
    };
    /// Returns a Status with this code and reason.
    static Answer status(int code, const std::string& reason, const std::string& message = {});
    /// Returns the answer of a server whose cache has not reached a version.
    static Answer tooLarge();
    /// Sets the answer for the next request of this verb: "get", "list", "watch", "create",
    /// "update", "patch", "delete". Several are used in order.
    void answerNext(const std::string& verb, Answer answer);

    /// The way in which a watch ends after it has sent its lines.
    enum class End { Stay, Clean, Abrupt, HalfLine, Silent };
    struct WatchPlan {
        std::vector<std::string> lines = {};  ///< sent after the existing events
        End end = End::Clean;                 ///< Stay: serves events as they happen
    };
    /// Sets the plan for the next watch; several are used in order. A watch without one stays.
    void planWatch(WatchPlan plan);
    /// Returns a line of a watch with a Status.
    static std::string errorLine(const Answer& status);
    /// Ends the open watches: Clean, Abrupt or HalfLine.
    void endWatches(End end);
    /// Sends a bookmark with the current version to all open watches.
    void bookmark();

    /// Returns all requests so far.
    std::vector<SeenRequest> seen() const;
    /// Returns the requests of one verb.
    std::vector<SeenRequest> seen(const std::string& verb) const;
    /// Waits until `count` watches have begun; throws std::runtime_error after ten seconds.
    void awaitWatches(std::size_t count);

    /// Breaks all connections, and accepts no more from now on.
    void shut();

private:
    /// The collection or object that a path names, and the verb of the request.
    struct Route {
        std::string collection;
        std::string ns;
        std::string name;
        std::string subresource;
        std::string verb;
        std::string key() const { return ns.empty() ? name : ns + "/" + name; }
    };
    /// One change of an object; null: it did not exist before, or does not after.
    struct Event {
        std::uint64_t version;
        std::string collection;
        Json before;
        Json after;
    };
    struct Watch;

    static std::optional<Route> route(const SeenRequest& request);
    void serve(ServedConnection& connection);
    bool answer(ServedConnection& connection, const SeenRequest& request);
    Answer handle(const SeenRequest& request, const Route& route);
    Answer list(const SeenRequest& request, const Route& route) const;
    Answer create(const SeenRequest& request, const Route& route);
    Answer update(const SeenRequest& request, const Route& route);
    Answer patch(const SeenRequest& request, const Route& route);
    Answer erase(const SeenRequest& request, const Route& route);
    Answer store(const Route& route, const std::string& key, const Json& before, Json after);
    /// Checks that the object exists, is in the namespace (empty: any) and fits the selectors.
    static bool selected(const Json& object, const SeenRequest& request, const std::string& ns);
    void watch(ServedConnection& connection, const SeenRequest& request, const Route& route);
    std::optional<Answer> refuseWatch(const SeenRequest& request) const;
    /// Returns the lines that the watch has not sent yet.
    std::vector<std::string> pending(Watch& watch, const SeenRequest& request, const Route& route);
    std::vector<std::string> initial(Watch& watch, const SeenRequest& request,
                                     const Route& route) const;
    static bool finish(ServedConnection& connection, End end);

    Json keep(const std::string& collection, Json object);
    void drop(const std::string& collection, const std::string& key);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::map<std::string, Json>> objects_;
    std::vector<Event> events_;
    std::uint64_t version_ = 100;
    std::uint64_t compacted_ = 0;
    std::uint64_t uids_ = 0;
    bool stream_lists_ = false;
    std::optional<std::string> token_;
    std::map<std::string, Json> documents_;
    std::map<std::string, std::deque<Answer>> answers_;
    std::deque<WatchPlan> plans_;
    std::vector<std::pair<std::string, SeenRequest>> seen_;
    std::size_t watches_ = 0;
    std::uint64_t ends_ = 0;  ///< number of calls of endWatches()
    End end_ = End::Stay;     ///< of the last call
    std::uint64_t bookmarks_ = 0;
    bool stopping_ = false;
    HttpListener listener_;  // last: its threads use all of the above
};

}  // namespace hearth::test
