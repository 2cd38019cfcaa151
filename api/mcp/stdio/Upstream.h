#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "api/mcp/protocol/JsonRpc.h"
#include "api/mcp/stdio/LocalFiles.h"
#include "base/Ids.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"

namespace hearth::mcp {

/// The server as the stdio bridge sees it: sends MCP messages and receives messages, in one session
/// for all connections. The session is opened anew when the server no longer knows it. Thread-safe;
/// each thread uses its own HttpClient.
class Upstream {
public:
    /// `endpoint`: the path of the server's MCP, "/mcp".
    Upstream(std::string url, std::string token, std::string endpoint = "/mcp",
             http::ClientOptions client = {});

    /// Returns a client for this server, for one thread.
    http::HttpClient connect() const;

    using Deliver = std::function<void(const Json&)>;
    /// Sends `initialize` as the user's client wrote it and remembers session and version.
    void initialize(http::HttpClient& client, const Json& message, const Deliver& deliver);
    /// Sends a message in the session, which is opened first if there is none, and delivers every
    /// message that comes back, as it comes. Throws Error.
    void exchange(http::HttpClient& client, const Json& message, const Deliver& deliver);
    /// The same for a message of 2026-07-28 or later, which has its own headers and no session.
    void exchangeModern(http::HttpClient& client, const Json& message, const Deliver& deliver);
    /// Receives messages that the server sends without a request until the connection ends; false
    /// if the server has no such stream. A requested stop ends it with the next bytes that come.
    /// Throws Error.
    bool listen(http::HttpClient& client, const std::stop_token& stop, const Deliver& deliver);

    /// Streams a local file into a workspace and returns its size. Throws Error, also if the
    /// server refuses the file. `mode`: "755", or none.
    std::uint64_t put(http::HttpClient& client, const std::string& workspace,
                      const std::string& path, const std::optional<std::string>& mode,
                      const LocalFiles& files, const std::string& local) const;
    /// Saves a workspace's file on the local disk; returns the path and its size.
    std::pair<std::string, std::uint64_t> get(http::HttpClient& client,
                                              const std::string& workspace, const std::string& path,
                                              const LocalFiles& files,
                                              const std::string& save_to) const;
    /// Do the same for the arguments of file_put and file_get. Return the text for the model.
    std::string upload(http::HttpClient& client, const Json& arguments,
                       const LocalFiles& files) const;
    std::string download(http::HttpClient& client, const Json& arguments,
                         const LocalFiles& files) const;

private:
    struct Session {
        std::string id;
        std::string version;
    };
    Session session(http::HttpClient& client);
    static http::ClientHeaders headersOf(const Session& session);
    /// Posts and delivers; returns status and headers. With `quiet_404` a 404 is not delivered.
    http::ClientResponse post(http::HttpClient& client, const Json& message,
                              const http::ClientHeaders& headers, bool quiet_404,
                              const Deliver& deliver) const;
    void adopt(const http::ClientResponse& response, const Json& answer);

    const std::string url_;
    const std::string token_;
    const std::string endpoint_;
    const http::ClientOptions client_;
    const std::string instance_ = newId("");  ///< this bridge's own id, kInstanceHeader
    mutable Mutex mutex_;
    Session session_ HEARTH_GUARDED_BY(mutex_);
    /// The params of the last initialize, to open a session anew.
    Json hello_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::mcp
