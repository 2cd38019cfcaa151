#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/command/Options.h"
#include "base/Json.h"
#include "base/http/client/HttpClient.h"
#include "base/http/client/SseReader.h"

namespace hearth::cli {

/// The server refused a request: the content of its problem details.
class RemoteError : public std::runtime_error {
public:
    RemoteError(int status, const std::string& message, std::string hint, std::string code)
        : std::runtime_error(message),
          status_(status),
          hint_(std::move(hint)),
          code_(std::move(code)) {}

    int status() const noexcept { return status_; }
    const std::string& hint() const noexcept { return hint_; }
    /// "POOL_EXHAUSTED"; empty if the answer had no problem details.
    const std::string& code() const noexcept { return code_; }

private:
    int status_;
    std::string hint_;
    std::string code_;
};

/// The program's exit status for this error (Options.h).
int exitStatusOf(const RemoteError& error) noexcept;
/// Makes the error for an answer with a status of 400 and above.
RemoteError remoteError(int status, std::string_view body);

/// --url, --token and --ca-file, which every client command takes.
std::vector<Flag> clientFlags();
/// The options with which those flags and the environment's proxies reach a server, without its
/// token. Throws UsageError for a file that holds no certificates.
http::ClientOptions clientOptions(const Options& options);
/// `flags` plus the client's flags.
std::vector<Flag> withClientFlags(std::vector<Flag> flags);

/// How long one request of a Remote may block its caller.
struct RemotePatience {
    /// The longest silence; a claim may wait for its image, a drain for every sandbox.
    std::chrono::milliseconds silence = std::chrono::minutes(12);
    /// A request under way ends soon after it becomes true; outlives the Remote.
    const std::atomic<bool>* stop = nullptr;
};

struct Answer {
    int status = 0;
    Json body;  ///< null if there was none
};

/// The command line's view of a Hearth server: JSON over one kept-alive connection. Throws
/// RemoteError for a status of 400 and above, Error(Unavailable) if no server answers. Not
/// thread-safe.
class Remote {
public:
    explicit Remote(const Options& options, RemotePatience patience = {});
    /// A server given only by its address; `options` configure its connections.
    Remote(const std::string& url, http::ClientOptions options);

    Json get(const std::string& target);
    /// All items of a paged list.
    std::vector<Json> list(const std::string& target);
    /// The number of items that the last list lacked because their sandboxes do not answer.
    std::uint64_t unanswered() const { return unanswered_; }
    /// If `body` is null, none is sent.
    Answer send(const std::string& method, const std::string& target, const Json& body = nullptr,
                http::ClientHeaders headers = {});
    /// Like send, for raw bytes in both directions.
    std::string raw(const std::string& method, const std::string& target, std::string body = {},
                    http::ClientHeaders headers = {});
    /// Sends the bytes of `request.source`.
    void upload(const http::ClientRequest& request);
    /// GET of raw bytes, streamed. `head` is called once, before the first byte, unless the answer
    /// is a refusal. Throws Error(Unavailable) if the answer is cut off, and everything that the
    /// callbacks throw.
    void download(const std::string& target,
                  const std::function<void(const http::ClientResponse&)>& head,
                  const std::function<void(std::string_view)>& sink);
    /// Reads an event stream until it ends or `on_event` returns false; waits for ever.
    void events(http::ClientRequest request,
                const std::function<bool(const http::SseEvent&)>& on_event);

    const std::string& url() const { return client_.url(); }
    /// Makes a second connection to the same server.
    Remote another() const { return {client_.url(), options_}; }

private:
    http::ClientOptions options_;
    http::HttpClient client_;
    const std::atomic<bool>* stop_ = nullptr;  ///< stops get, list and send
    std::uint64_t unanswered_ = 0;
};

}  // namespace hearth::cli
