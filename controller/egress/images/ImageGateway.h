#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Fd.h"
#include "controller/egress/ProxyConnection.h"
#include "controller/egress/images/RegistryDialer.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::egress {

/// The way out of one image's fetch. The fetching process has no network, only listeners that it
/// passes here through a socket. The first listener is an HTTP proxy; each further one stands for
/// the registry at its port. The RegistryDialer makes every connection, and each is logged as a
/// sandbox's is (`egress.request`). Thread-safe.
class ImageWay {
public:
    struct Ground {
        metrics::Log& log;
        metrics::Metrics& metrics;
        const Clock& clock;
        const metrics::Tracer& tracer;
    };
    /// Throws Refused if the registry must not be reached.
    ImageWay(const std::string& image, std::optional<Destination> registry,
             std::unique_ptr<RegistryDialer> dialer, const Ground& ground);
    /// Ends its connections and waits for their threads.
    ~ImageWay();
    ImageWay(const ImageWay&) = delete;
    ImageWay& operator=(const ImageWay&) = delete;

    /// The end of the socket that the fetching process sends its listeners to; stays owned here.
    int socket() const noexcept { return theirs_.get(); }
    /// The last destination that was refused.
    std::optional<Refused> refused() const { return dialer_->refused(); }

private:
    struct Connection {
        explicit Connection(Fd socket) : fd(std::move(socket)) {}
        const Fd fd;
        std::atomic<bool> done{false};
        std::jthread thread{};
    };

    void run();
    std::vector<Fd> receiveListeners() const;
    void accept(const Fd& listener, bool proxy);
    void relayTo(const Destination& registry, int fd);

    const std::unique_ptr<RegistryDialer> dialer_;
    const std::optional<Destination> registry_;
    WorkspaceEgress egress_;
    const ProxyFacts facts_;
    Fd ours_;
    Fd theirs_;
    std::list<Connection> connections_;  ///< used by the thread, then by the destructor
    std::jthread thread_;
};

/// Makes the ways out for the images of claims. Thread-safe.
class ImageGateway {
public:
    ImageGateway(DenySet deny, OperatorProxy proxy, const ImageWay::Ground& ground,
                 RegistryDialer::Resolve resolve = {})
        : deny_(std::move(deny)),
          proxy_(std::move(proxy)),
          ground_(ground),
          resolve_(std::move(resolve)) {}

    /// `registry` as an image reference has it, "host" or "host:port"; empty: the usual public one.
    /// Throws Refused if it has no address, or a denied one.
    std::unique_ptr<ImageWay> open(const std::string& image, const std::string& registry) const;

private:
    const DenySet deny_;
    const OperatorProxy proxy_;
    const ImageWay::Ground ground_;
    const RegistryDialer::Resolve resolve_;
};

}  // namespace hearth::egress
