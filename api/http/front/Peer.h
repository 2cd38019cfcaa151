#pragma once

#include <sys/socket.h>

#include <string>

namespace hearth::api {

/// The other end of a connection.
struct Peer {
    std::string text;  ///< its address
    /// The address for which its connections are counted: in IPv6 the network of 64 bits, because
    /// one client owns all its addresses.
    std::string counted_as;
    bool loopback = false;
};

/// An IPv4-mapped IPv6 address counts as that IPv4 address.
Peer peerOf(const sockaddr_storage& address);

}  // namespace hearth::api
