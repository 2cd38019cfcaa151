#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "metrics/Log.h"

namespace hearth::program {

/// Listens at the server's address and carries every connection to the leading replica, byte for
/// byte. So each replica serves everything, and one process alone has the state that cannot be
/// shared (claims, sessions, streams, rates). Thread-safe.
class Relay {
public:
    /// `listen` is "host:port". `log` must outlive it.
    Relay(const std::string& listen, metrics::Log& log);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// Begins to listen. Throws Error(Unavailable) if it cannot.
    void start();
    /// Sends connections to this HOST:PORT from now on; connections to another address end. Empty:
    /// no replica leads; clients get an answer to try again.
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
