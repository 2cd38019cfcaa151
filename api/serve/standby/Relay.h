#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "metrics/Log.h"

namespace hearth::program {

/// Listens where the server would, and carries every connection to the replica that leads, byte for
/// byte: so each replica serves everything, and what only one process can know (claims, sessions,
/// streams, rates) is known to one. Thread-safe.
class Relay {
public:
    /// `listen` is "host:port". `log` outlives it.
    Relay(const std::string& listen, metrics::Log& log);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// Throws Error(Unavailable) where it cannot listen.
    void start();
    /// Connections go to this HOST:PORT from now on, and those to another place end. Empty: nobody
    /// leads; clients are told to try again.
    void aim(const std::string& address);
    std::string target() const;
    /// Ends all connections, and frees the address.
    void stop();
    std::uint16_t port() const;

private:
    struct Inner;
    std::unique_ptr<Inner> inner_;
};

}  // namespace hearth::program
