#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/interpreters/DriverMessages.h"

namespace hearth::agent {

class DriverChannel;

/// The listener of a driver. Calls come on the loop's thread.
class DriverListener {
public:
    virtual void driverSaid(DriverChannel& channel, std::string_view kind,
                            std::string_view payload) = 0;
    /// The driver has closed its end, or sent something that is not a message. Nothing more comes.
    virtual void driverClosed(DriverChannel& channel) = 0;

protected:
    ~DriverListener() = default;
};

/// The agent's end of a driver's channel.
class DriverChannel final : public Source {
public:
    /// Makes both ends of a channel. The driver may speak as soon as it has its end, so from here
    /// on the kernel notes who does. False if there is no socket.
    static bool open(Fd& ours, Fd& theirs);

    /// `socket` is our end, of open().
    DriverChannel(EventLoop& loop, DriverListener& listener, Fd socket);
    ~DriverChannel() override { close(); }

    void listen(DriverListener& listener) noexcept { listener_ = &listener; }
    /// Hears from now on only the process that speaks first, which a driver does before it runs any
    /// code: a child that the code forks has the descriptor too.
    void hearOne() noexcept { one_ = true; }
    /// Sends in order; bytes that the socket does not take wait in memory.
    void write(std::string_view bytes);
    /// Sends one message with descriptors; needs an empty queue; false if it could not be sent.
    bool writeWith(std::string_view bytes, const int* fds, std::size_t count);
    void close();
    bool isOpen() const noexcept { return static_cast<bool>(socket_); }
    /// True if the driver has read everything written to it; after close(), if it had by then.
    bool taken() const;
    /// Reads the bytes that have already arrived, without waiting for the loop.
    void read();

    void ready(std::uint32_t events) override;

private:
    void flush();
    /// Reads once as recv() does; `sender` is the process that wrote the bytes.
    ssize_t receive(char* buffer, std::size_t size, pid_t& sender);

    EventLoop& loop_;
    DriverListener* listener_;
    Fd socket_;
    bool one_ = false;
    pid_t driver_ = -1;  ///< the process that is heard; -1 for any
    DriverMessages messages_;
    std::string out_;
    bool waiting_ = false;  ///< for room in the socket
    bool refused_ = false;  ///< the driver closed its end with something unread
};

}  // namespace hearth::agent
