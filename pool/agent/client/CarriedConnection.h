#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/connection/Poller.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

/// A tenant's connection whose bytes come as frames: on one side the stream of one `carry`, on the
/// other a socket whose pair is served as if the tenant had made it. It ends when the pair is
/// closed and the tenant's side has taken everything, or when the agent says so. `until_over` is
/// destroyed then, by the thread that reads the agent.
///
/// Only the Poller may read the agent's connection: everything happens on its thread, except
/// start(), reset() and lost().
class CarriedConnection final : public Stream,
                                public Polled,
                                public std::enable_shared_from_this<CarriedConnection> {
public:
    /// Makes the tunnel and the pair of its socket; the pair is non-blocking, the caller closes it.
    static std::pair<std::shared_ptr<CarriedConnection>, Fd> make(
        Poller& poller, std::shared_ptr<AgentConnection> agent, std::shared_ptr<void> until_over);
    ~CarriedConnection() override;
    CarriedConnection(const CarriedConnection&) = delete;
    CarriedConnection& operator=(const CarriedConnection&) = delete;

    /// Asks the agent for the connection with this number. Throws AgentLost.
    void start(std::int64_t number, AgentConnection::Deadline deadline);
    /// After this the tenant sees a reset instead of an end when the pair is closed.
    void reset() noexcept { reset_ = true; }

    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override;
    bool listens() const override { return true; }
    void tick(AgentConnection& from, std::uint32_t stream) override;
    void ready() override;

private:
    CarriedConnection(Poller& poller, std::shared_ptr<AgentConnection> agent,
                      std::shared_ptr<void> until_over, Fd socket);

    void move();
    void deliver();
    void collect();
    void endIfClosed();
    void watch();

    Poller& poller_;
    const std::shared_ptr<AgentConnection> agent_;
    const std::shared_ptr<void> until_over_;
    const Fd socket_;
    std::uint64_t poll_id_ = 0;
    std::atomic<std::uint32_t> stream_{0};
    std::atomic<bool> reset_{false};
    std::atomic<bool> lost_{false};

    std::string inbound_;  ///< bytes from the tenant, not yet in the socket
    std::size_t window_ = kInitialCredit;
    std::size_t owed_ = 0;  ///< bytes delivered, but not yet granted to the agent again
    bool tenant_ended_ = false;
    bool tenant_end_told_ = false;

    std::string outbound_;  ///< a piece for the tenant that the agent's connection had no room for
    std::size_t credit_ = kInitialCredit;
    std::optional<Steady::time_point> stuck_since_;  ///< since then, agent_ has no room
    bool begun_ = false;
    bool ended_ = false;                        ///< the pair's owner sends nothing more
    bool closed_ = false;                       ///< the pair's owner has closed it
    std::optional<Steady::time_point> cut_at_;  ///< after closed_: for a tenant that takes no more
    bool end_sent_ = false;
    bool cancelled_ = false;
};

}  // namespace hearth::agent
