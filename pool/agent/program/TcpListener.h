#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/Fd.h"

namespace hearth::agent {

/// Listens on this port of every address, IPv6 and IPv4 with one socket: a tenant finds neither
/// free, and cannot share the port. Empty with errno if it cannot be had.
Fd listenOnTcp(std::uint16_t port);

/// Whether this address is one of our own network's: then the peer is a process of the sandbox, or
/// a proxy of the Pod's.
bool isOwnAddress(const sockaddr_storage& peer);

/// The address as text.
std::string addressText(const sockaddr_storage& peer);

/// Small frames go at once; a server that has vanished is noticed within a minute.
void tuneTcp(int socket);

}  // namespace hearth::agent
