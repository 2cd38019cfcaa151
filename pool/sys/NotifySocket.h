#pragma once

#include <string>
#include <utility>

namespace hearth::sys {

/// Tells systemd how far the server is (sd_notify(3), a unit of `Type=notify`): one datagram a
/// word. Written here, for libsystemd would be a library more for twenty lines. Without
/// NOTIFY_SOCKET, and where nobody listens, nothing happens. Thread-safe.
class NotifySocket {
public:
    /// Takes NOTIFY_SOCKET out of the environment, so that no child speaks in the server's name.
    static NotifySocket ofEnvironment();
    /// `socket`: a path, or "@" and an abstract name; empty: there is none.
    explicit NotifySocket(std::string socket) : socket_(std::move(socket)) {}

    /// It serves.
    void ready() const { tell("READY=1\nSTATUS=serving"); }
    void stopping() const { tell("STOPPING=1\nSTATUS=stopping"); }

private:
    void tell(const std::string& words) const;

    const std::string socket_;
};

}  // namespace hearth::sys
