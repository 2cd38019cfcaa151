#include "controller/egress/transport/Dialer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr std::chrono::milliseconds kConnectWithin = std::chrono::seconds(10);
constexpr std::size_t kMostTries = 4;

Fd connectTo(const IpAddress& address, std::uint16_t port) {
    socklen_t length = 0;
    const sockaddr_storage to = address.socketAddress(port, length);
    Fd fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return {};
    const int yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0) {
        if (errno != EINPROGRESS) return {};
        pollfd wait{fd.get(), POLLOUT, 0};
        int done = 0;
        do {
            done = ::poll(&wait, 1, static_cast<int>(kConnectWithin.count()));
        } while (done < 0 && errno == EINTR);
        int error = 0;
        socklen_t size = sizeof(error);
        if (done <= 0 || ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
            error != 0) {
            return {};
        }
    }
    return fd;
}

}  // namespace

std::vector<IpAddress> Dialer::resolve(const std::string& name) const {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* first = nullptr;
    const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &first);
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, &::freeaddrinfo);
    std::vector<IpAddress> out;
    for (const addrinfo* entry = error == 0 ? first : nullptr; entry != nullptr;
         entry = entry->ai_next) {
        const std::optional<IpAddress> address = IpAddress::of(*entry->ai_addr);
        if (address && std::find(out.begin(), out.end(), *address) == out.end()) {
            out.push_back(*address);
        }
    }
    if (out.empty()) {
        throw Refused(kBadGateway, "unresolved", name + " cannot be resolved");
    }
    return out;
}

std::vector<IpAddress> Dialer::permitted(const NetworkPolicy& policy,
                                         const Destination& destination) const {
    if (!policy.allows(destination)) {
        throw Refused(kForbidden, "not_allowed",
                      destination.text() + " is not on the allow-list of this workspace");
    }
    std::vector<IpAddress> addresses = addressesOf(destination);
    check(destination, addresses);
    return addresses;
}

Fd Dialer::dial(const NetworkPolicy& policy, const Destination& destination) const {
    return connect(destination, permitted(policy, destination));
}

std::vector<IpAddress> Dialer::addressesOf(const Destination& destination) const {
    return destination.literal ? std::vector<IpAddress>{*destination.literal}
                               : resolve(destination.host);
}

void Dialer::check(const Destination& destination, const std::vector<IpAddress>& addresses) const {
    for (const IpAddress& address : addresses) {
        if (deny_.denies(address)) {
            throw Refused(kForbidden, "denied_address",
                          destination.text() + " is at an address that no sandbox may reach");
        }
    }
}

Fd Dialer::connect(const Destination& destination, std::vector<IpAddress> addresses) {
    if (addresses.size() > kMostTries) addresses.resize(kMostTries);
    for (const IpAddress& address : addresses) {
        if (Fd fd = connectTo(address, destination.port)) return fd;
    }
    throw Refused(kBadGateway, "unreachable", destination.text() + " does not answer");
}

}  // namespace hearth::egress
