#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Fd.h"

namespace hearth::api {

using ClientHeaders = std::vector<std::pair<std::string, std::string>>;
/// Takes pieces of an answer's body as they arrive; false ends the exchange and the connection.
using BodySink = std::function<bool(std::string_view)>;
/// Gives pieces of a request's body: up to `size` bytes into `out`, 0 at its end.
using BodySource = std::function<std::size_t(char* out, std::size_t size)>;

struct ClientOptions {
    std::chrono::milliseconds connect_timeout{5'000};
    /// The longest silence while sending or receiving; zero waits for ever.
    std::chrono::milliseconds timeout{60'000};
    /// Sent with every request, e.g. Authorization.
    ClientHeaders headers;
    /// The largest body that request() keeps in memory.
    std::size_t max_body = 256U << 20U;
};

struct ClientRequest {
    std::string method = "GET";
    std::string target = "/";  ///< path and query, encoded; put behind the path of the base URL
    ClientHeaders headers;
    std::string body;
    /// Instead of `body`: streamed, with `source_length` bytes if known, else chunked.
    BodySource source;
    std::optional<std::uint64_t> source_length;
    /// Instead of the client's timeout.
    std::optional<std::chrono::milliseconds> timeout;
};

struct ClientResponse {
    int status = 0;
    ClientHeaders headers;
    std::string body;

    /// The first header of that name, whatever its case; nullopt where absent.
    std::optional<std::string> header(std::string_view name) const;
};

/// A blocking HTTP/1.1 client with one kept-alive connection: each exchange is one write and, for a
/// small answer, one read in the caller's thread. Not thread-safe: one client a thread.
///
/// Failures are Error: Unavailable (cannot connect, connection lost), Deadline (too slow),
/// InvalidArgument (the URL), Internal (the answer is not HTTP). An HTTP error status is no
/// failure. A kept connection that the server closed meanwhile is replaced unseen; a request that
/// may have reached the server is sent again only if its method is idempotent.
class Client {
public:
    /// "http://host:port", with an optional path put before every target, or "unix:///path".
    explicit Client(std::string url, ClientOptions options = {});

    /// Sends and receives the whole answer.
    ClientResponse request(const ClientRequest& request);
    ClientResponse get(const std::string& target, ClientHeaders headers = {});
    ClientResponse post(const std::string& target, std::string body,
                        const std::string& content_type = "application/json",
                        ClientHeaders headers = {});
    /// Sends, hands status and headers to `head` (false ends the exchange; may be empty) and the
    /// body piece by piece to `sink`; the returned body is empty.
    ClientResponse stream(const ClientRequest& request, const BodySink& sink,
                          const std::function<bool(const ClientResponse&)>& head = {});

    /// Closes the connection; the next request opens one.
    void close() noexcept;
    /// From any thread: breaks the connection, so that what is on its way fails as if it were lost.
    void interrupt() noexcept;
    const std::string& url() const { return url_; }

private:
    using Wait = std::chrono::milliseconds;
    /// The connection as interrupt() sees it; apart, so that a client can be moved.
    struct Open {
        std::mutex mutex;
        int fd = -1;  ///< guarded by mutex
    };

    ClientResponse exchange(const ClientRequest& request, const BodySink* sink,
                            const std::function<bool(const ClientResponse&)>& head);
    void connect();
    bool stale() const;
    std::string requestHead(const ClientRequest& request) const;
    /// False if the connection broke meanwhile; an answer may be there all the same.
    bool sendWhole(const ClientRequest& request, Wait timeout);
    void sendRequest(const ClientRequest& request, Wait timeout);
    void sendAll(std::string_view head, std::string_view body, Wait timeout);
    void readHead(ClientResponse& response, Wait timeout, bool& keep);
    bool readBody(const ClientRequest& request, ClientResponse& response, const BodySink* sink,
                  Wait timeout, bool& keep);
    bool readChunked(ClientResponse& response, const BodySink* sink, Wait timeout);
    bool readCounted(std::uint64_t length, ClientResponse& response, const BodySink* sink,
                     Wait timeout);
    bool deliver(std::string_view piece, ClientResponse& response, const BodySink* sink) const;
    std::string readLine(Wait timeout);
    /// Appends to buffer_; false at the end of the connection.
    bool fill(Wait timeout);
    /// Sets the socket's own time limits, if they differ from the last ones: no poll per read.
    void applyTimeout(Wait timeout);

    std::string url_;
    ClientOptions options_;
    std::string host_;  ///< for connecting; empty with a Unix socket
    std::string port_;
    std::string unix_path_;
    std::string host_header_;
    std::string base_path_;
    Fd fd_;
    Wait applied_{-1};
    std::unique_ptr<Open> open_ = std::make_unique<Open>();
    bool answered_ = false;  ///< a byte of the present answer has arrived
    std::unique_ptr<char[]> scratch_;
    std::string buffer_;  ///< received and not yet taken: from taken_ on
    std::size_t taken_ = 0;
};

}  // namespace hearth::api
