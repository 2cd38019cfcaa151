#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/Fd.h"

namespace hearth::agent {

/// Listens on this port of every address, IPv6 and IPv4 with one socket: a tenant finds neither
/// free, and cannot share the port. Returns an empty Fd, with errno, on failure.
Fd listenOnTcp(std::uint16_t port);

/// True if this address belongs to this network namespace: then the peer is a process of the
/// sandbox, or a proxy of the Pod's.
bool isOwnAddress(const sockaddr_storage& peer);

/// Returns the address as text.
std::string addressText(const sockaddr_storage& peer);

/// Makes small frames go at once, and a vanished server noticed within a minute.
void tuneTcp(int socket);

}  // namespace hearth::agent
