#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/NameValueCollection.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/Clock.h"
#include "base/tenants/AccessRight.h"
#include "base/trace/TraceContext.h"

namespace hearth::api {

struct Response;

/// Header fields in the order in which they were added, found by name in any case.
class HeaderFields : public Poco::Net::NameValueCollection {
public:
    HeaderFields() = default;
    HeaderFields(std::initializer_list<std::pair<std::string, std::string>> fields);
};

/// One HTTP request whose head is complete and has passed the guards: Poco's server request, with
/// the parts that Poco lacks. Lives for one handle().
class Request : public Poco::Net::HTTPServerRequest {
public:
    const std::string& method() const { return getMethod(); }
    /// Percent-decoded path, without the query; never holds NUL. "/v1/pools".
    virtual const std::string& path() const = 0;
    /// The path as sent, without the query: it is split into segments before decoding.
    virtual const std::string& rawPath() const = 0;
    /// The value of a query parameter, decoded; nullopt if absent.
    virtual std::optional<std::string> query(std::string_view name) const = 0;
    /// All query parameters in order, decoded.
    virtual const std::vector<std::pair<std::string, std::string>>& queryAll() const = 0;
    /// A header by case-insensitive name, the first of several; nullopt if absent.
    std::optional<std::string> header(const std::string& name) const;
    /// The client's address without port, "127.0.0.1": the peer's, or as a trusted proxy says.
    virtual const std::string& peer() const = 0;
    virtual bool peerIsLoopback() const = 0;
    /// "req_" and 128 random bits, also sent as X-Request-Id; goes into logs and problem details.
    virtual const std::string& id() const = 0;
    /// This request as a span: in the trace of a valid traceparent, else in a new one.
    virtual const TraceContext& trace() const = 0;
    const std::string& traceId() const { return trace().trace_id; }
    /// The time when the head was complete: all measured times of the request start here.
    virtual TimePoint startedAt() const = 0;
    /// The declared body length; nullopt if chunked; 0 without a body.
    virtual std::optional<std::uint64_t> contentLength() const = 0;
    /// Reads the whole body. Throws Error(PayloadTooLarge) above `limit` bytes, Error(Deadline) if
    /// the client is too slow.
    virtual std::string readBody(std::size_t limit) = 0;
    /// Streams the body: up to `size` bytes into `out`, 0 at its end; the same errors.
    virtual std::size_t readSome(char* out, std::size_t size) = 0;
    /// Stop is requested when the server shuts down.
    virtual std::stop_token stopToken() const = 0;
    /// True if the client has closed its side; costs one system call.
    virtual bool clientGone() const = 0;
    /// Reports to the front which route took the request, so that its metrics name it even if the
    /// handler throws. A Router calls it; other classes may ignore it.
    virtual void tookRoute(const std::string& pattern) { static_cast<void>(pattern); }
    /// Sets the tenant whose share of streams and waits the answer uses, and the right to it: the
    /// answer under way ends when the right ends. Only the front uses it.
    // NOLINTBEGIN(performance-unnecessary-value-param): the front keeps it
    virtual void actsFor(const std::string& tenant, const std::string& token_id,
                         AccessRight right) {
        // NOLINTEND(performance-unnecessary-value-param)
        static_cast<void>(tenant);
        static_cast<void>(token_id);
        static_cast<void>(right);
    }
    /// Sets the WWW-Authenticate of a 401, instead of "Bearer". The text outlives the request. Only
    /// the front must implement it.
    virtual void challengedBy(const std::string& challenge) { static_cast<void>(challenge); }
    /// Notes why the caller is refused; only the audit log gets the reason. Only the front must
    /// implement it.
    virtual void refusedFor(const char* reason) { static_cast<void>(reason); }
    virtual std::string refusal() const { return {}; }
    /// Adds a header to any answer, also to errors. Only the front must implement it.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): the front keeps them
    virtual void addAnswerHeader(std::string name, std::string value) {
        static_cast<void>(name);
        static_cast<void>(value);
    }
    /// Is called once with the answer, also with an error, before it is sent; in a worker's thread.
    /// The last callback counts; it must not throw. Only the front must implement it.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): the front keeps it
    virtual void onAnswered(std::function<void(const Response&)> callback) {
        static_cast<void>(callback);
    }
};

/// The sending side of an answer that has left its worker thread: a quiet stream costs no thread.
/// The front's epoll thread writes it out. Thread-safe; held by the producer as shared_ptr.
class Stream {
public:
    virtual ~Stream() = default;
    /// Queues bytes (already framed, e.g. an SSE event; the front adds chunked coding). False once
    /// the client is gone or finish() was called; the bytes are then dropped.
    virtual bool send(std::string bytes) = 0;
    /// Bytes queued that the kernel has not taken yet. A producer pauses above kHighWater.
    virtual std::size_t pending() const = 0;
    /// Ends the answer cleanly after the queued bytes.
    virtual void finish() = 0;
    /// Ends it so that the client sees that the answer is incomplete.
    virtual void cut() = 0;
    virtual bool closed() const = 0;
    /// True if it ended because the right to it ended: its client has not hung up.
    virtual bool lapsed() const { return false; }
    /// Called from the front's thread each time pending() falls below kLowWater after it was above
    /// kHighWater; must not block. Set before the first send.
    virtual void onDrained(std::function<void()> callback) = 0;
    /// Called once from the front's thread when the client has gone or the stream has ended; must
    /// not block. Called at once if that has already happened. Several callbacks may be added.
    virtual void onClosed(std::function<void()> callback) = 0;
    /// The tenant of the stream (Request::actsFor): a server of many streams lets tenants take
    /// turns.
    virtual const std::string& tenant() const = 0;

    static constexpr std::size_t kHighWater = 256U << 10U;
    static constexpr std::size_t kLowWater = 64U << 10U;
};

/// Writes a body piece by piece while the worker thread waits for it (downloads). `write` blocks
/// while the client is slow and throws if it is gone or past its deadline.
using BodyWriter = std::function<void(const std::function<void(std::string_view)>& write)>;
/// Receives the stream after the head has been sent. Must not block for long.
using StreamStarter = std::function<void(std::shared_ptr<Stream>)>;

/// An answer that is made when something has happened. No worker is held meanwhile; the front's
/// thread watches the client, and a client that hangs up ends it. The Request lives until the
/// answer is sent. Callbacks own the objects they touch.
struct Suspension {
    /// Subscribes to changes; called once. `wake` may be called from any thread, also late. The
    /// subscription ends with the returned object.
    std::function<std::shared_ptr<void>(std::function<void()> wake)> subscribe;
    /// True if the request can continue; called at once and after each wake on the front's thread:
    /// must not block.
    std::function<bool()> ready;
    /// When to continue in any case. The server's stop continues it too.
    TimePoint until{TimePoint::max()};
    /// Makes the answer in a worker, as Handler::handle does. It may suspend again.
    std::function<Response()> resume;
    /// The answer if the limit of waiting requests is reached; empty: 503. Must not suspend.
    std::function<Response()> give_up{};
};

/// A handler's answer. Header values with control characters make the front throw.
struct Response {
    int status = 200;
    HeaderFields headers;  ///< except Content-Length and other framing
    std::variant<std::string, BodyWriter, StreamStarter, Suspension> body;
    /// With a BodyWriter: the body's length if known (else chunked).
    std::optional<std::uint64_t> length;
    /// With a StreamStarter: sent after this much silence ("": nothing), e.g. ": keepalive\n\n".
    std::string keepalive;
    std::chrono::seconds keepalive_after{15};
    /// With a StreamStarter: it waits for news, so it may be ended to make room for other streams.
    bool news = false;
    /// The route's template for metrics ("/v1/pools/{pool}"); never the raw path.
    std::string route;
    /// Kept until the answer needs no worker any more.
    std::shared_ptr<void> ticket;
    /// Only of a problem: its errorCode.
    std::string error_code;
};

/// Answers requests; many worker threads call it at once. The one catch in the front turns each
/// exception into an answer: Error into problem details, any other into Internal.
class Handler : public Poco::Net::HTTPRequestHandler {
public:
    virtual Response handle(Request& request) = 0;
    /// The same for callers of Poco's interface. Both arguments must be the front's objects.
    void handleRequest(Poco::Net::HTTPServerRequest& request,
                       Poco::Net::HTTPServerResponse& response) final;
};

}  // namespace hearth::api
