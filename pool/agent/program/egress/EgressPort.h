#pragma once

#include <cstdint>
#include <memory>

#include "base/Fd.h"
#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// The one way out of a sandbox: a port on its loopback whose connections are handed over to the
/// server, which speaks HTTP with them and decides where they may go. The agent reads none of their
/// bytes. On the loop's thread.
class EgressPort final : public Source {
public:
    explicit EgressPort(EventLoop& loop) : loop_(loop) {}
    ~EgressPort() override;

    /// The `broker` operation: listens, and hands over as many connections as the stream has
    /// credit for; the others wait in the kernel's queue. The last stream asked for has them all.
    void open(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void ready(std::uint32_t events) override;

private:
    class Line;

    const char* listen(std::uint16_t port);
    void watch();

    EventLoop& loop_;
    Fd listener_;
    std::uint16_t port_ = 0;
    bool watched_ = false;
    Line* line_ = nullptr;  ///< who takes the connections; owned by its server connection
};

}  // namespace hearth::agent
