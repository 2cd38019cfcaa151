#pragma once

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
    /// It has closed its end, or sent something that is not a message. Nothing more comes.
    virtual void driverClosed(DriverChannel& channel) = 0;

protected:
    ~DriverListener() = default;
};

/// Our end of a driver's channel.
class DriverChannel final : public Source {
public:
    DriverChannel(EventLoop& loop, DriverListener& listener, Fd socket);
    ~DriverChannel() override { close(); }

    void listen(DriverListener& listener) noexcept { listener_ = &listener; }
    /// Sends in order; what the socket does not take waits in memory.
    void write(std::string_view bytes);
    /// One message with descriptors, which needs an empty queue; false if it could not be sent.
    bool writeWith(std::string_view bytes, const int* fds, std::size_t count);
    void close();
    bool isOpen() const noexcept { return static_cast<bool>(socket_); }
    /// Whether the driver has read all that was written to it; once it is closed, whether it had.
    bool taken() const;
    /// Takes what has already arrived, without waiting for the loop.
    void read();

    void ready(std::uint32_t events) override;

private:
    void flush();

    EventLoop& loop_;
    DriverListener* listener_;
    Fd socket_;
    DriverMessages messages_;
    std::string out_;
    bool waiting_ = false;  ///< for room in the socket
    bool refused_ = false;  ///< the driver closed its end with something unread
};

}  // namespace hearth::agent
