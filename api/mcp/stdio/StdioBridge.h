#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/mcp/protocol/JsonRpc.h"
#include "api/mcp/stdio/LocalFiles.h"
#include "api/mcp/stdio/SessionStream.h"
#include "api/mcp/stdio/Upstream.h"
#include "base/Mutex.h"
#include "metrics/Log.h"

namespace hearth::mcp {

struct BridgeOptions {
    std::string url = "http://127.0.0.1:8080";
    std::string token;             ///< empty: none
    http::ClientOptions client{};  ///< how the server is reached, by TLS and proxies
    std::string compat{};  ///< "s0" to "s3": that seed's endpoint and tools; empty: Hearth's own
    std::string root;      ///< what local_path and save_to may reach; empty: no local file
    /// After the end of input, how long calls still in work may take to be answered.
    std::chrono::milliseconds grace{1'500};
};

/// `hearth mcp`: MCP of both eras on stdin and stdout, carried to a server's /mcp. Calls run at
/// once, each in a thread of its own; stdout carries nothing but protocol, one message a line. With
/// a root, file_put gains `local_path` and file_get gains `save_to`, which are done here, on the
/// user's own disk; without one both are refused.
class StdioBridge {
public:
    /// Does not own the descriptors. Error where the URL or the root is bad.
    StdioBridge(const BridgeOptions& options, int in, int out, metrics::Log& log);
    StdioBridge(const StdioBridge&) = delete;
    StdioBridge& operator=(const StdioBridge&) = delete;

    /// Serves until the input ends and gives the exit status. Where a call is still unanswered
    /// after `grace`, nobody can hear it any more and its thread sits in a read that nothing else
    /// ends: then this ends the process, status 0.
    int run();

    static constexpr std::size_t kMaxThreads = 32;
    static constexpr std::size_t kMaxLine = 16U << 20U;

private:
    void take(std::string line);
    void takeNotification(const Json& message, const Message& read);
    void enqueue(Json message);
    /// Takes a request back; true if that is done here.
    bool cancel(const Json& id);
    /// Takes back what would never end by itself.
    void endSubscriptions();
    void work(const std::stop_token& stop);
    void answer(http::HttpClient& client, const Json& message);
    /// The answer of a call that is done here; null for one that is the server's.
    Json answerHere(http::HttpClient& client, const Message& message);
    /// Notes what carries a modern request; false if that was taken back already.
    bool carry(const Json& id, http::HttpClient& client);
    /// A seed's call that names a path of the user's disk, done here; null for any other.
    Json answerSeed(http::HttpClient& client, const Message& message, const Json& arguments);
    /// The shared directory. Throws Error(Forbidden) without one.
    const LocalFiles& files() const;
    bool takenBack(const Json& id);
    void write(const Json& message);
    Json failure(const Json& id, const std::exception& error) const;

    const BridgeOptions options_;
    const int in_;
    const int out_;
    metrics::Log& log_;
    std::optional<LocalFiles> files_;  ///< none without a root
    Upstream upstream_;
    http::HttpClient reader_client_;  ///< of run()'s thread
    Mutex out_mutex_;                 ///< keeps lines whole
    Mutex mutex_;
    StoppableCondition changed_;
    std::deque<Json> queue_ HEARTH_GUARDED_BY(mutex_);
    struct Request {
        /// The connection that carries one call of 2026-07-28; its end cancels the call. Else null.
        http::HttpClient* carrier = nullptr;
        bool subscription = false;
    };
    std::map<std::string, Request> in_work_ HEARTH_GUARDED_BY(mutex_);  ///< by id as JSON
    std::set<std::string> cancelled_ HEARTH_GUARDED_BY(mutex_);  ///< those of them taken back
    std::size_t busy_ HEARTH_GUARDED_BY(mutex_) = 0;             ///< messages queued or running
    std::size_t idle_ HEARTH_GUARDED_BY(mutex_) = 0;             ///< threads that wait
    std::unique_ptr<SessionStream> stream_;                      ///< of run()'s thread
    std::vector<std::jthread> threads_;
};

/// Adds `local_path` and `save_to` to the tools of a tools/list answer; with an empty root only
/// says that there are none.
void addLocalArguments(Json& answer, const std::string& root);

}  // namespace hearth::mcp
