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
    http::ClientOptions client{};  ///< TLS and proxies on the way to the server
    std::string compat{};  ///< "s0" to "s3": that seed's endpoint and tools; empty: Hearth's own
    std::string root;      ///< local_path and save_to stay beneath it; empty: no local file
    /// How long running calls may take to be answered after the end of input.
    std::chrono::milliseconds grace{1'500};
};

/// `hearth mcp`: MCP of both eras on stdin and stdout, carried to a server's /mcp. Calls run at
/// once, each in a thread of its own; stdout carries only protocol, one message a line. With a
/// root, file_put gains `local_path` and file_get gains `save_to`. The bridge does both on the
/// user's own disk; without a root both are refused.
class StdioBridge {
public:
    /// Does not own the descriptors. Throws Error if the URL or the root is bad.
    StdioBridge(const BridgeOptions& options, int in, int out, metrics::Log& log);
    StdioBridge(const StdioBridge&) = delete;
    StdioBridge& operator=(const StdioBridge&) = delete;

    /// Serves until the input ends and returns the exit status. If a call is still unanswered after
    /// `grace`, its client is gone and its thread is blocked in a read that nothing else ends; then
    /// this ends the process with status 0.
    int run();

    static constexpr std::size_t kMaxThreads = 32;
    static constexpr std::size_t kMaxLine = 16U << 20U;

private:
    void take(std::string line);
    void takeNotification(const Json& message, const Message& read);
    void enqueue(Json message);
    /// Cancels a request; true if this needs no message to the server.
    bool cancel(const Json& id);
    /// Cancels subscriptions, which would never end by themselves.
    void endSubscriptions();
    void work(const std::stop_token& stop);
    void answer(http::HttpClient& client, const Json& message);
    /// Answers a call that the bridge does itself; null if the server has to do it.
    Json answerHere(http::HttpClient& client, const Message& message);
    /// Notes the connection of a modern request; false if the request is already cancelled.
    bool carry(const Json& id, http::HttpClient& client);
    /// Does a seed's call that names a path on the user's disk; null for any other.
    Json answerSeed(http::HttpClient& client, const Message& message, const Json& arguments);
    /// Returns the shared directory. Throws Error(Forbidden) if there is none.
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
    http::HttpClient reader_client_;  ///< used by run()'s thread
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
    std::set<std::string> cancelled_ HEARTH_GUARDED_BY(mutex_);  ///< the cancelled ones of them
    std::size_t busy_ HEARTH_GUARDED_BY(mutex_) = 0;             ///< messages queued or running
    std::size_t idle_ HEARTH_GUARDED_BY(mutex_) = 0;             ///< threads that wait
    std::unique_ptr<SessionStream> stream_;                      ///< used by run()'s thread
    std::vector<std::jthread> threads_;
};

/// Adds `local_path` and `save_to` to the tools of a tools/list answer. With an empty root it only
/// adds that they do not exist.
void addLocalArguments(Json& answer, const std::string& root);

}  // namespace hearth::mcp
