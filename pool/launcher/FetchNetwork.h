#pragma once

#include <string>

namespace hearth::pool::launcher {

/// Moves this process, which must have one thread, into a network namespace with nothing but a
/// loopback, and sends over `gateway` what listens there: a proxy's address, and where `registry`
/// ("host:port" of a reference, or empty) is an address of the loopback or localhost, its own, for
/// programs do not ask a proxy for those. The server accepts on them. Gives the proxy's URL.
std::string enterFetchNetwork(const std::string& registry, int gateway);

}  // namespace hearth::pool::launcher
