#pragma once

#include <string>
#include <utility>

namespace hearth::sys {

/// Reports the server's state to systemd (sd_notify(3), a unit of `Type=notify`): one datagram per
/// state. Written here, since libsystemd would be another library for twenty lines. Without
/// NOTIFY_SOCKET, or without a listener, nothing happens. Thread-safe.
class NotifySocket {
public:
    /// Removes NOTIFY_SOCKET from the environment, so that no child reports in the server's name.
    static NotifySocket ofEnvironment();
    /// `socket`: a path, or "@" and an abstract name; empty: there is none.
    explicit NotifySocket(std::string socket) : socket_(std::move(socket)) {}

    /// Reports that the server serves.
    void ready() const { tell("READY=1\nSTATUS=serving"); }
    void stopping() const { tell("STOPPING=1\nSTATUS=stopping"); }

private:
    void tell(const std::string& words) const;

    const std::string socket_;
};

}  // namespace hearth::sys
