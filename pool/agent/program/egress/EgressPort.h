#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/Fd.h"
#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// The one way out of a sandbox: a port on its loopback whose connections are handed over to the
/// server, which speaks HTTP with them and decides where they may go. If descriptors do not reach
/// the server, each connection is announced by a number and its bytes are carried. The agent looks
/// at none of them. On the loop's thread.
class EgressPort final : public Source {
public:
    explicit EgressPort(EventLoop& loop) : loop_(loop) {}
    ~EgressPort() override;

    /// The `broker` operation: listens, and hands over as many connections as the stream has credit
    /// for; the others wait in the kernel's queue. Only the last stream that asked gets them.
    void open(Connection& connection, std::uint32_t stream, const JsonValue& body);
    /// The `carry` operation: the stream becomes a connection that was announced.
    void carry(Connection& connection, std::uint32_t stream, const JsonValue& body);
    /// Ends announced connections that nobody has taken in time.
    std::int64_t nextTickNs() const;
    void tick(std::int64_t now_ns);
    void ready(std::uint32_t events) override;

private:
    class Line;

    struct Announced {
        Fd socket;
        std::int64_t until_ns = 0;
    };

    const char* listen(std::uint16_t port);
    void watch();
    void handOver(Fd accepted);

    EventLoop& loop_;
    Fd listener_;
    std::uint16_t port_ = 0;
    bool watched_ = false;
    Line* line_ = nullptr;  ///< takes the connections; owned by its server connection
    std::int64_t last_announced_ = 0;
    std::map<std::int64_t, Announced> announced_;  ///< by number, so the oldest is first
};

}  // namespace hearth::agent
