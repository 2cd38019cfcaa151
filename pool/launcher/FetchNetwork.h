#pragma once

#include <string>

namespace hearth::pool::launcher {

/// Moves this process, which must have one thread, into a network namespace with only a loopback,
/// and sends its listeners over `gateway`: for a proxy and, if `registry` ("host:port" of a
/// reference, or empty) is localhost or a loopback address, for that too, since programs ask no
/// proxy for it. The server accepts on them. Returns the proxy's URL.
std::string enterFetchNetwork(const std::string& registry, int gateway);

}  // namespace hearth::pool::launcher
