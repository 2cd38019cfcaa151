#include "controller/egress/images/ImageGateway.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/Error.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kMostListeners = 8;
constexpr std::size_t kMostConnectionsOfFetch = 32;
/// The pool's name in counters and log lines, where sandboxes have their pools' names.
constexpr const char* kPool = "ondemand";

EgressLimits unlimited() {
    EgressLimits limits;
    limits.bytes = UINT64_MAX;  // an image has its own size limit
    limits.connections = kMostConnectionsOfFetch;
    return limits;
}

std::uint16_t portOf(const Fd& listener) {
    sockaddr_in6 address{};
    socklen_t size = sizeof(address);
    if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return ntohs(address.sin6_port);  // the port is at the same offset for both families
}

}  // namespace

ImageWay::ImageWay(const std::string& image, std::optional<Destination> registry,
                   std::unique_ptr<RegistryDialer> dialer, const Ground& ground)
    : dialer_(std::move(dialer)),
      registry_(std::move(registry)),
      egress_({"image:" + image, "", kPool}, {}, unlimited(), ground.log, ground.metrics,
              ground.clock, ground.tracer),
      facts_{.egress = egress_, .dialer = *dialer_, .ca_file = {}, .clock = ground.clock} {
    dialer_->checkRegistry();
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throwErrno("socketpair");
    ours_ = Fd(pair[0]);
    theirs_ = Fd(pair[1]);
    thread_ = std::jthread([this] { run(); });
}

ImageWay::~ImageWay() {
    ::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
    for (const Connection& connection : connections_) {
        ::shutdown(connection.fd.get(), SHUT_RDWR);
    }
    connections_.clear();
}

std::vector<Fd> ImageWay::receiveListeners() const {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostListeners * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t n = 0;
    do {
        n = ::recvmsg(ours_.get(), &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    std::vector<Fd> out;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); n > 0 && c != nullptr;
         c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            out.emplace_back(fd);
        }
    }
    return out;
}

void ImageWay::run() {
    const std::vector<Fd> listeners = receiveListeners();
    std::vector<pollfd> waits{{ours_.get(), POLLIN, 0}};
    for (const Fd& listener : listeners) waits.push_back({listener.get(), POLLIN, 0});
    while (!listeners.empty()) {
        if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
        if (waits[0].revents != 0) return;  // either side has ended it
        for (std::size_t i = 0; i < listeners.size(); ++i) {
            if (waits[i + 1].revents != 0) accept(listeners[i], i == 0);
        }
    }
}

void ImageWay::accept(const Fd& listener, bool proxy) {
    Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    connections_.remove_if([](const Connection& each) { return each.done.load(); });
    if (!fd || connections_.size() >= kMostConnectionsOfFetch) return;
    std::optional<Destination> registry = registry_;
    if (registry) registry->port = portOf(listener);
    Connection& connection = connections_.emplace_back(std::move(fd));
    connection.thread = std::jthread([this, &connection, proxy, registry] {
        if (proxy) {
            const int socket = connection.fd.get();
            ProxyConnection(socket, facts_, [socket] { resetAtClose(socket); }).run();
        } else if (registry) {
            relayTo(*registry, connection.fd.get());
        }
        ::shutdown(connection.fd.get(), SHUT_RDWR);
        connection.done = true;
    });
}

void ImageWay::relayTo(const Destination& registry, int fd) {
    EgressEntry entry;
    entry.at = facts_.clock.wall();
    entry.kind = EgressKind::Tunnel;
    entry.destination = registry.text();
    entry.decision = "allowed";
    const TimePoint begin = facts_.clock.now();
    Carried carried;
    try {
        const Fd outside = dialer_->dial(egress_.policy(), registry);
        relay(fd, outside.get(), {}, carried);
    } catch (const Refused& e) {
        entry.decision = e.reason();
        entry.status = e.status();
    } catch (const StreamBroken&) {  // the bytes before the break still count
    }
    entry.sent = carried.sent;
    entry.received = carried.received;
    entry.duration_ms = toMillis(facts_.clock.now() - begin);
    egress_.record(std::move(entry));
}

std::unique_ptr<ImageWay> ImageGateway::open(const std::string& image,
                                             const std::string& registry) const {
    std::optional<Destination> there;
    if (!registry.empty()) {
        there = Destination::parse(registry, 0);
        if (!there) {
            throw Refused(kForbidden, "bad_destination",
                          "\"" + registry + "\" is not a registry's host in the usual spelling");
        }
    }
    return std::make_unique<ImageWay>(
        image, there, std::make_unique<RegistryDialer>(deny_, proxy_, there, resolve_), ground_);
}

}  // namespace hearth::egress
