#include "api/http/front/Front.h"

#include <Poco/Exception.h>
#include <Poco/Net/NetException.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/Runnable.h>
#include <Poco/ThreadPool.h>
#include <fcntl.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "api/http/front/EventLoop.h"
#include "api/http/front/FrontContext.h"
#include "api/http/front/RequestQueue.h"
#include "api/http/front/Worker.h"
#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr int kBacklog = 1024;

std::vector<std::string> allowedHosts(const FrontOptions& options) {
    std::vector<std::string> hosts = options.hosts;
    hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "[::1]"});
    if (const std::optional<std::string> own = hostOf(options.listen)) {
        // A wildcard address is no name that a client should use.
        if (*own != "0.0.0.0" && *own != "[::]") hosts.push_back(*own);
    }
    return hosts;
}

/// Passes each request to the one handler.
class OneHandler final : public Poco::Net::HTTPRequestHandlerFactory {
public:
    explicit OneHandler(Handler& handler) : handler_(handler) {}

    Poco::Net::HTTPRequestHandler* createRequestHandler(
        const Poco::Net::HTTPServerRequest& /*request*/) override {
        return std::make_unique<Turn>(handler_).release();
    }

private:
    /// Poco deletes a handler after its answer; the one handler stays.
    class Turn final : public Poco::Net::HTTPRequestHandler {
    public:
        explicit Turn(Handler& handler) : handler_(handler) {}
        void handleRequest(Poco::Net::HTTPServerRequest& request,
                           Poco::Net::HTTPServerResponse& response) override {
            handler_.handleRequest(request, response);
        }

    private:
        Handler& handler_;
    };

    Handler& handler_;
};

Poco::Net::HTTPServerParams::Ptr paramsOf(const FrontOptions& options) {
    constexpr std::int64_t kMicros = 1'000;
    Poco::Net::HTTPServerParams::Ptr params = new Poco::Net::HTTPServerParams;
    params->setServerName(options.listen);
    params->setMaxThreads(static_cast<int>(options.workers));
    params->setMaxQueued(static_cast<int>(options.queue));
    params->setTimeout(options.body_stall.count() * kMicros);
    params->setKeepAliveTimeout(options.keep_alive.count() * kMicros);
    return params;
}

/// The tracer of fronts whose requests are not recorded.
const metrics::Tracer kUntraced;

/// A worker as Poco's thread pool runs it.
class WorkerThread final : public Poco::Runnable {
public:
    WorkerThread(FrontContext& core, RequestQueue& queue, EventLoop& loop)
        : worker_(core, queue, loop) {}
    void run() override { worker_.run(); }

private:
    Worker worker_;
};

/// `error` is an errno, or 0 if the system reported none.
[[noreturn]] void refuseToListen(const FrontOptions& options, int error) {
    const std::string flag = options.flag + " HOST:PORT";
    std::string why = std::generic_category().message(error);
    std::string hint = "give another with " + flag;
    switch (error) {
        case EADDRINUSE:
            why = "another program has that port";
            hint += ", or find and stop the program: ss -ltnp";
            break;
        case EACCES:
            why = "ports below 1024 are for root";
            hint += " of 1024 or above, or start as root";
            break;
        case EADDRNOTAVAIL:
            why = "this machine does not have that address";
            hint += "; 0.0.0.0 is all that it has";
            break;
        case 0:
            why = "that is no address";
            hint += ", as 127.0.0.1:8080 or [::1]:8080";
            break;
        default:
            break;
    }
    throw Error(ErrorCode::Conflict,
                "cannot listen on " + options.listen + " (" + options.flag + "): " + why)
        .hint(hint);
}

}  // namespace

struct Front::Inner {
    Inner(FrontOptions given, Poco::Net::HTTPRequestHandlerFactory::Ptr handlers,
          metrics::Metrics& metrics, metrics::Log& log, const Clock& clock)
        : options(std::move(given)),
          core{options,
               std::move(handlers),
               metrics,
               log,
               clock,
               options.tracer != nullptr ? *options.tracer : kUntraced,
               HostRules(options.check_host, allowedHosts(options), options.origins),
               paramsOf(options)},
          queue(options.queue, options.workers / 4) {}

    void listen();

    FrontOptions options;
    FrontContext core;
    RequestQueue queue;
    Poco::Net::ServerSocket socket;
    std::unique_ptr<EventLoop> loop;
    std::vector<std::unique_ptr<WorkerThread>> workers;
    std::unique_ptr<Poco::ThreadPool> threads;
    bool stopped = false;
};

void Front::Inner::listen() {
    try {
        const Poco::Net::SocketAddress address(options.listen);
        socket.bind(address, true, false);
        socket.listen(kBacklog);
        socket.setBlocking(false);
        socket.setNoDelay(true);  // Linux: accepted sockets inherit it
        core.bound = socket.address();
    } catch (const Poco::Net::DNSException&) {  // its codes are not errno values
        refuseToListen(options, 0);
    } catch (const Poco::Exception& e) {
        refuseToListen(options, e.code());
    }
    const int fd = socket.impl()->sockfd();
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) throwErrno("fcntl");
}

Front::Front(FrontOptions options, Handler& handler, metrics::Metrics& metrics, metrics::Log& log,
             const Clock& clock)
    : Front(std::move(options), new OneHandler(handler), metrics, log, clock) {}

Front::Front(FrontOptions options, Poco::Net::HTTPRequestHandlerFactory::Ptr handlers,
             metrics::Metrics& metrics, metrics::Log& log, const Clock& clock)
    : inner_(
          std::make_unique<Inner>(std::move(options), std::move(handlers), metrics, log, clock)) {}

Front::~Front() {
    stop();
}

void Front::start() {
    Inner& in = *inner_;
    if (in.loop || in.stopped) throw std::logic_error("the front was started before");
    in.listen();
    if (in.options.tls.any()) {
        in.core.tls = std::make_unique<TlsTunnels>(in.options.tls, in.core.metrics, in.core.log,
                                                   in.core.clock);
    }
    in.loop = std::make_unique<EventLoop>(in.core, in.queue, in.socket.impl()->sockfd());
    const int count = static_cast<int>(in.options.workers);
    in.threads = std::make_unique<Poco::ThreadPool>(in.options.name, count, count, 60,
                                                    static_cast<int>(in.options.worker_stack));
    for (int i = 0; i < count; ++i) {
        in.workers.push_back(std::make_unique<WorkerThread>(in.core, in.queue, *in.loop));
        in.threads->start(*in.workers.back(), in.options.name + "-worker");
    }
    in.core.metrics.httpWorkers(in.options.name, count);
    in.loop->start();
    in.core.log.info("http.listening",
                     {{"listener", in.options.name}, {"address", in.core.bound.toString()}});
}

std::string Front::address() const {
    return inner_->core.bound.host().toString();
}
std::uint16_t Front::port() const {
    return inner_->core.bound.port();
}

void Front::stop() {
    Inner& in = *inner_;
    if (in.stopped || !in.loop) return;
    in.stopped = true;
    in.core.stopping.store(true);
    in.core.stop.request_stop();
    in.loop->beginStop();
    in.queue.close();
    in.threads->joinAll();
    in.loop->join();
    in.core.tls.reset();
    in.socket.close();
}

std::size_t Front::connections() const {
    return inner_->core.connections.load();
}
std::size_t Front::streams() const {
    return inner_->core.streams.count() + inner_->core.news.count();
}

}  // namespace hearth::api
