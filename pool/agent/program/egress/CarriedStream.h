#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

/// A connection that a tenant made to the way out, whose bytes go as Data frames because its
/// descriptor cannot reach the server (PROTOCOL.md, `carry`). At most a window of them waits in
/// each direction. The server ends it (Cancel); if its End is not through by then, or the server
/// has gone, the tenant sees a reset instead of an end. On the loop's thread.
class CarriedStream final : public Stream, public Source {
public:
    CarriedStream(EventLoop& loop, Connection& connection, std::uint32_t id, Fd socket);
    ~CarriedStream() override;

    /// Watches the socket. Call it when the connection knows the stream.
    void start() { watch(); }

    void data(std::string_view bytes) override;
    void end() override;
    void credit(std::uint32_t bytes) override;
    void detach() override;
    void pump() override { watch(); }
    void ready(std::uint32_t events) override;

private:
    void receive();
    void write();
    void watch();

    EventLoop& loop_;
    Connection& connection_;
    const std::uint32_t id_;
    Fd socket_;
    std::uint32_t watched_ = 0;
    std::size_t room_ = kInitialCredit;  ///< bytes that the server takes
    std::string out_;                    ///< bytes that the tenant has not taken
    std::size_t owed_ = 0;               ///< taken by the tenant, but not yet granted to the server
    bool server_ended_ = false;
    bool tenant_ended_ = false;
    bool through_ = false;  ///< the tenant has got everything, and the end
};

}  // namespace hearth::agent
