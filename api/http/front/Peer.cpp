#include "api/http/front/Peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace hearth::api {
namespace {

constexpr std::ptrdiff_t kNetworkBytes = 8;

std::string textOf(int family, const void* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, address, text.data(), text.size());
    return text.data();
}

}  // namespace

Peer peerOf(const sockaddr_storage& address) {
    Peer peer;
    if (address.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        peer.text = textOf(AF_INET, &v4.sin_addr);
        peer.counted_as = peer.text;
        peer.loopback = (ntohl(v4.sin_addr.s_addr) >> 24U) == 127;
    } else if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        peer.text = textOf(AF_INET6, &v6.sin6_addr);
        peer.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            peer.text = peer.text.substr(peer.text.rfind(':') + 1);
            peer.counted_as = peer.text;
            peer.loopback = v6.sin6_addr.s6_addr[12] == 127;
        } else {
            in6_addr network = v6.sin6_addr;
            std::fill(std::begin(network.s6_addr) + kNetworkBytes, std::end(network.s6_addr), 0);
            peer.counted_as = textOf(AF_INET6, &network) + "/64";
        }
    }
    return peer;
}

}  // namespace hearth::api
