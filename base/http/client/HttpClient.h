#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/http/client/ClientConnection.h"

namespace hearth::http {

using ClientHeaders = std::vector<std::pair<std::string, std::string>>;
/// Takes pieces of an answer's body as they arrive; false ends the exchange and the connection.
using BodySink = std::function<bool(std::string_view)>;
/// Gives pieces of a request's body: up to `size` bytes into `out`, 0 at its end.
using BodySource = std::function<std::size_t(char* out, std::size_t size)>;

struct ClientOptions {
    std::chrono::milliseconds connect_timeout{5'000};
    /// The longest silence while sending or receiving; zero waits for ever.
    std::chrono::milliseconds timeout{60'000};
    /// Headers that every request has, for example Authorization.
    ClientHeaders headers;
    /// For URLs with https; null: one that trusts this machine's authorities.
    std::shared_ptr<const TlsContext> tls = nullptr;
    /// For URLs; a proxy is never used for unix:// and for this machine.
    ProxySettings proxies = {};
    /// For URLs: as in Endpoint::dead_peer.
    std::chrono::milliseconds dead_peer{0};
    /// The largest body that request() keeps in memory.
    std::size_t max_body = 256U << 20U;
};

struct ClientRequest {
    std::string method = "GET";
    std::string target = "/";  ///< path and query, encoded; appended to the path of the base URL
    ClientHeaders headers;
    std::string body;
    /// Used instead of `body`: streamed, with `source_length` bytes if known, else chunked.
    BodySource source;
    std::optional<std::uint64_t> source_length;
    /// Used instead of the client's timeout.
    std::optional<std::chrono::milliseconds> timeout;
    /// Used instead of both until the answer's head has come: for streams that may be silent later.
    std::optional<std::chrono::milliseconds> answer_timeout;
    /// The end of the whole exchange, including the connecting.
    TimePoint until = TimePoint::max();
    const std::atomic<bool>* stop = nullptr;  ///< ends the exchange when it becomes true
};

struct ClientResponse {
    int status = 0;
    ClientHeaders headers;
    std::string body;

    /// The first header with that name, in any case; nullopt if absent.
    std::optional<std::string> header(std::string_view name) const;
};

/// A blocking HTTP/1.1 client with one kept-alive connection. Poco writes and reads the heads and
/// bodies; the connection is Hearth's (DECISIONS). Not thread-safe: one client per thread.
///
/// Failures are ExchangeError, or Error(InvalidArgument) for the URL or a header. An HTTP error
/// status is no failure. If the server closed a kept connection, a new one silently replaces it; a
/// request that may have reached the server is sent again only if its method is idempotent.
class HttpClient {
public:
    /// A URL as in ServerUrl; a path in it is put before every target.
    explicit HttpClient(std::string url, ClientOptions options = {});
    HttpClient(Endpoint endpoint, ClientOptions options);
    HttpClient(HttpClient&& other) noexcept;
    ~HttpClient();

    /// Sends the request and receives the whole answer.
    ClientResponse request(const ClientRequest& request);
    ClientResponse get(const std::string& target, ClientHeaders headers = {});
    ClientResponse post(const std::string& target, std::string body,
                        const std::string& content_type = "application/json",
                        ClientHeaders headers = {});
    /// Sends the request, passes status and headers to `head` (false ends the exchange; may be
    /// empty) and the body piece by piece to `sink`; the returned body is empty.
    ClientResponse stream(const ClientRequest& request, const BodySink& sink,
                          const std::function<bool(const ClientResponse&)>& head = {});

    /// The answer to a request for a stream: a refusal, or the connection and its first bytes.
    struct Upgraded {
        ClientResponse response;
        std::optional<ClientConnection> connection;
        std::string early;
    };
    /// Sends on a new connection; a status of 101, or 200 without chunks, hands it over.
    Upgraded upgrade(const ClientRequest& request);

    /// Closes the connection; the next request opens one.
    void close() noexcept;
    /// From any thread: breaks the connection, so that an exchange under way fails as lost.
    void interrupt() noexcept;
    /// The URL, or the endpoint's name.
    const std::string& url() const { return endpoint_.name; }

private:
    /// Poco's session over one connection.
    class Session;
    /// The connection for interrupt(); a separate object, so that a client can be moved.
    struct Open {
        Mutex mutex;
        int fd HEARTH_GUARDED_BY(mutex) = -1;
    };

    ClientResponse exchange(const ClientRequest& request, const BodySink* sink,
                            const std::function<bool(const ClientResponse&)>& head);
    void connect(const ClientRequest& request);
    /// Sends the request and reads the head of the answer.
    ClientResponse send(const ClientRequest& request);
    bool readBody(ClientResponse& response, const BodySink* sink);

    Endpoint endpoint_;
    ClientOptions options_;
    std::string host_header_;
    std::string base_path_;
    std::unique_ptr<Open> open_ = std::make_unique<Open>();
    std::unique_ptr<Session> session_;
};

}  // namespace hearth::http
