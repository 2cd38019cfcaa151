#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/connection/Poller.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::agent;
using namespace std::chrono_literals;

namespace {

/// A stream that wants its next tick soon and also a later one, like a second stream would.
class Restless final : public Stream {
public:
    bool frame(AgentConnection&, const FrameHeader&, std::string_view) override { return false; }
    bool listens() const override { return true; }
    void tick(AgentConnection& connection, std::uint32_t) override {
        const Steady::time_point now = Steady::now();
        ++ticks;
        if (now - begin > 100ms) over = true;
        connection.wantTick(now + 20ms);
        connection.wantTick(now + 2ms);
    }

    const Steady::time_point begin = Steady::now();
    std::atomic<int> ticks = 0;
    std::atomic<bool> over = false;
};

}  // namespace

TEST_CASE("a tick replaced by an earlier one never fires", "[unit][agent]") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    const Fd peer(ends[1]);
    Poller poller;
    const auto stream = std::make_shared<Restless>();
    const auto connection = AgentConnection::start(poller, Fd(ends[0]), {});
    connection->open(stream, "{}", Steady::now() + 10s);
    connection->wantTick(Steady::now());
    REQUIRE(hearth::test::eventually([&] { return stream->over.load(); }));
    connection->close();
    const auto most = (Steady::now() - stream->begin) / 2ms + 1;
    CHECK(stream->ticks <= most);
}

TEST_CASE("paced output of all executions together has a bounded pace", "[unit][agent]") {
    Poller poller;
    const Steady::time_point begin = Steady::now();
    CHECK(poller.allowPaced(1'000'000, begin) == 1'000'000);
    CHECK(poller.allowPaced(1'000'000, begin) == 600'000);
    CHECK(poller.allowPaced(1'000'000, begin) == 0);
    CHECK(poller.allowPaced(100'000, begin + 10ms) == 100'000);
    CHECK(poller.allowPaced(1'000'000, begin + 10ms) == 220'000);
    CHECK(poller.allowPaced(9'000'000, begin + 10s) == 1'600'000);
}
