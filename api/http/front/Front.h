#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/http/AccessLog.h"
#include "api/http/Handler.h"
#include "api/http/tls/TlsFiles.h"
#include "base/Clock.h"
#include "base/http/RequestHead.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::api {

struct FrontOptions {
    using Millis = std::chrono::milliseconds;

    std::string listen = "127.0.0.1:8080";  ///< "host:port", "[v6]:port"; port 0 picks one
    TlsFiles tls = {};                      ///< none: clients speak without TLS
    std::string flag = "--listen";          ///< the flag that sets it, named in errors
    std::string name = "api";               ///< in logs and thread names
    /// Records requests; null: none are recorded. Outlives the front.
    const metrics::Tracer* tracer = nullptr;
    /// Gets each finished request; null: none are logged. Outlives the front.
    AccessLog* access = nullptr;
    std::size_t workers = 16;
    std::size_t worker_stack = 256U << 10U;

    bool check_host = true;
    /// Allowed in addition to localhost, 127.0.0.1, [::1] and the host of `listen`.
    std::vector<std::string> hosts;
    /// Whole origins, in addition to those of the allowed hosts.
    std::vector<std::string> origins;

    HeadLimits head;
    std::size_t connections = 4096;
    /// Counts connections without an answer in progress, in IPv6 per network of 64 bits; streams
    /// and waits are counted per tenant below.
    std::size_t connections_per_address = 512;
    /// Addresses and ranges without this cap, whose X-Forwarded-For is trusted.
    std::vector<std::string> trusted_proxies;
    // Together at most three quarters of `connections`, so that there is always room for others.
    std::size_t streams = 1024;  ///< streamed answers, except news
    std::size_t streams_of_tenant = 256;
    std::size_t news = 1024;  ///< streams that wait for news
    std::size_t news_of_tenant = 256;
    std::size_t news_of_token = 64;
    std::size_t waits = 1024;  ///< suspended requests
    std::size_t waits_of_tenant = 512;
    std::uint64_t waiting_bytes_of_tenant = 256U << 20U;  ///< the bodies of suspended requests
    std::uint64_t unread_bytes_of_tenant = 256U << 20U;   ///< long answers that were not taken
    std::size_t queue = 1024;                             ///< complete heads that wait for a worker
    std::size_t eager_body =
        16U << 10U;  ///< bodies up to this size are read before a worker is used
    std::size_t drain_body =
        64U << 10U;  ///< unread bodies up to this size cost no connection if they have arrived
    std::size_t stream_buffer = 8U << 20U;  ///< a stream whose producer ignores kHighWater is cut

    Millis first_byte{5'000};
    Millis head_time{5'000};
    Millis keep_alive{75'000};
    Millis body_time{5'000};               ///< plus size / body_rate
    Millis body_stall{10'000};             ///< ends a body that brings no byte for so long
    std::uint64_t body_rate = 64U << 10U;  ///< bytes a second that a client must reach
    /// If all places are taken: a client that takes nothing for so long is closed first, and one
    /// that was accepted so recently and has sent no request yet is closed last.
    Millis unread{250};
    Millis fresh{1'000};
    Millis write_stall{30'000};  ///< ends a write or stream that makes no progress for so long
    Millis linger{2};            ///< how long a worker waits for the next request
    Millis drain{5'000};         ///< how long stop() lets work under way finish
};

/// The HTTP/1.1 server: handlers, requests and responses are Poco's, the rest is its own. One
/// thread accepts connections and owns each one that no worker has: half-read heads, idle
/// keep-alive connections and detached streams. Workers get a connection only when a whole head
/// (and a small body) is there, so slow clients cost no thread.
///
/// Socket deadlines are real time read from `clock`: pass the machine's. All arguments must outlive
/// the front. start() and stop() belong to one thread; the rest is thread-safe.
class Front {
public:
    Front(FrontOptions options, Handler& handler, metrics::Metrics& metrics, metrics::Log& log,
          const Clock& clock);
    /// The same for any Poco handlers: one is made for each request, in its worker.
    Front(FrontOptions options, Poco::Net::HTTPRequestHandlerFactory::Ptr handlers,
          metrics::Metrics& metrics, metrics::Log& log, const Clock& clock);
    ~Front();
    Front(const Front&) = delete;
    Front& operator=(const Front&) = delete;

    /// Listens and serves. Throws std::system_error if it cannot; starting twice is an error.
    void start();
    /// The address it listens on, "127.0.0.1", and its port; valid after start().
    std::string address() const;
    std::uint16_t port() const;
    /// Stops accepting, stops the requests' stop tokens, lets work under way and streams finish
    /// within `drain`, then cuts the rest; returns when every thread has ended. A handler that
    /// ignores its token and waits for no socket delays this. A second call does nothing.
    void stop();

    /// Open connections and streams, for tests and metrics.
    std::size_t connections() const;
    std::size_t streams() const;

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;
};

}  // namespace hearth::api
