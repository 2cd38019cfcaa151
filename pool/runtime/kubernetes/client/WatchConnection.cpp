#include "pool/runtime/kubernetes/client/WatchConnection.h"

#include <system_error>

#include "base/http/client/LineReader.h"

namespace hearth::pool::kubernetes {
namespace {

/// Larger than any object that etcd accepts (1.5 MiB as stored, more as JSON).
constexpr std::size_t kMostLine = 16U << 20U;
constexpr std::size_t kMostRefusal = 1U << 20U;

}  // namespace

/// One request with its progress.
struct WatchConnection::Exchange {
    http::ClientRequest request;
    http::LineReader lines;
    http::ClientResponse response = {};
    bool long_line = false;
    bool refused = false;

    bool streams() const { return response.status == 200; }
    bool take(std::string_view piece) {
        if (streams()) {
            refused = !lines.feed(piece);
            return !refused;
        }
        response.body.append(piece.substr(0, kMostRefusal - response.body.size()));
        return response.body.size() < kMostRefusal;
    }
};

KubeResult<WatchEnd> WatchConnection::run(const std::string& target, const Limits& limits,
                                          const Listener& listener) {
    Exchange exchange{.request = {}, .lines = http::LineReader(kMostLine, listener.on_line)};
    exchange.request.target = target;
    exchange.request.timeout = limits.silence;
    exchange.request.answer_timeout = limits.answer;
    exchange.request.stop = &stop_;
    try {
        const ClusterCredentials credentials = access_.credentials();
        attempt(exchange, listener, credentials);
        if (exchange.response.status == 401 && access_.refused(credentials)) {
            attempt(exchange, listener, access_.credentials());
        }
    } catch (const http::ExchangeError& e) {
        if (stop_) return WatchEnd::Stopped;
        if (!exchange.streams()) return errorOf(e);
        return e.kind() == http::ExchangeError::Kind::Late ? WatchEnd::Silent : WatchEnd::Abrupt;
    } catch (const Error& e) {  // a token that is invalid in a header
        if (exchange.streams()) throw;
        return malformed(e.what());
    } catch (const std::system_error& e) {  // no descriptor is left
        if (exchange.streams()) throw;
        return noSocket(e);
    }
    if (stop_) return WatchEnd::Stopped;
    if (exchange.response.status >= 400) return errorOf(exchange.response);
    if (!exchange.streams()) return malformed("a watch was answered with no stream");
    if (exchange.long_line) return WatchEnd::LongLine;
    if (exchange.refused) return WatchEnd::Refused;
    return exchange.lines.unfinished() > 0 ? WatchEnd::Abrupt : WatchEnd::Clean;
}

void WatchConnection::attempt(Exchange& exchange, const Listener& listener,
                              const ClusterCredentials& credentials) {
    exchange.request.headers.clear();
    if (!credentials.authorization.empty()) {
        exchange.request.headers.emplace_back("Authorization", credentials.authorization);
    }
    exchange.response = {};
    const auto head = [&](const http::ClientResponse& response) {
        exchange.response = response;
        if (exchange.streams()) listener.on_open();
        return true;
    };
    try {
        clientFor(credentials)
            .stream(
                exchange.request, [&](std::string_view piece) { return exchange.take(piece); },
                head);
    } catch (const http::ExchangeError&) {
        throw;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::PayloadTooLarge) throw;
        exchange.long_line = true;
    }
}

http::HttpClient& WatchConnection::clientFor(const ClusterCredentials& credentials) {
    if (!client_ || tls_version_ != credentials.tls_version) {
        http::HttpClient made(access_.config().url, access_.clientOptions(credentials));
        const MutexLock lock(mutex_);
        client_.reset();
        client_.emplace(std::move(made));
        tls_version_ = credentials.tls_version;
    }
    return *client_;
}

void WatchConnection::stop() noexcept {
    stop_ = true;
    const MutexLock lock(mutex_);
    if (client_) client_->interrupt();
}

}  // namespace hearth::pool::kubernetes
