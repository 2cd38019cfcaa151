#pragma once

#include <functional>
#include <string>

#include "base/Clock.h"
#include "base/Fd.h"

namespace hearth::pool::docker {

/// Gives an agent its listening socket. A daemon passes no descriptors into a container, and the
/// tenant, who has the agent's uid, could reach or replace a socket that the agent made in a
/// mounted folder. So the listening socket is made outside and passed through another socket in a
/// folder that is mounted read-only; that one is removed before any tenant code runs.
class SocketHandover {
public:
    /// Creates the folder and the socket in it. Throws Error(Conflict) if the folder exists.
    explicit SocketHandover(std::string folder);
    /// Removes both; the container keeps an empty folder.
    ~SocketHandover();
    SocketHandover(const SocketHandover&) = delete;
    SocketHandover& operator=(const SocketHandover&) = delete;

    /// Waits for the agent, gives it `listening` and waits until it is ready. `alive` is called
    /// from time to time and throws when waiting is pointless. Error(Deadline) after `until`.
    void give(int listening, TimePoint until, const std::function<void()>& alive);

private:
    std::string folder_;
    Fd socket_;
};

}  // namespace hearth::pool::docker
