#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/client/Peer.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::test;
using namespace std::chrono_literals;

namespace {

/// An agent that the test plays. It has sent hello, and runs `x` on stream 2.
class HandPeer {
public:
    HandPeer() {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throwErrno("socketpair");
        }
        mine_ = Fd(ends[1]);
        tell(frame(FrameType::Reply, 1, kHello));
        client = std::make_unique<AgentClient>(
            poller, [&] { return Fd(ends[0]); }, 1, 5s, [this](const AgentLost&) { ++lost; });
        CHECK(hear().first == FrameType::Request);
        ExecRequest request;
        request.id = "x";
        request.command = "cat";
        request.stdin_open = true;
        handle = client->exec(request, sink);
        CHECK(hear().first == FrameType::Request);
        tell(frame(FrameType::Note, 2, kStarted));
    }

    void tell(std::string_view bytes) {
        ::send(mine_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    void credit(std::uint32_t bytes) {
        std::string payload(4, '\0');
        putU32(reinterpret_cast<unsigned char*>(payload.data()), bytes);
        tell(frame(FrameType::Credit, 2, payload));
    }
    std::pair<FrameType, std::string> hear() {
        std::array<char, kHeaderSize> head{};
        read(head.data(), head.size());
        FrameHeader header;
        REQUIRE(decodeHeader(reinterpret_cast<const unsigned char*>(head.data()), header));
        std::string payload(header.length, '\0');
        read(payload.data(), payload.size());
        return {header.type, std::move(payload)};
    }
    /// Returns the input after at least this many bytes have arrived.
    std::string input(std::size_t bytes) {
        std::string all;
        while (all.size() < bytes) {
            auto [type, payload] = hear();
            REQUIRE(type == FrameType::Data);
            REQUIRE(!payload.empty());
            all += payload;
        }
        return all;
    }
    void hangUp() { mine_ = Fd(); }

    std::atomic<int> lost{0};
    Poller poller;
    const std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
    std::unique_ptr<AgentClient> client;
    std::shared_ptr<ExecHandle> handle;

private:
    void read(char* into, std::size_t size) {
        while (size > 0) {
            pollfd entry{mine_.get(), POLLIN, 0};
            REQUIRE(::poll(&entry, 1, 5000) == 1);
            const ssize_t n = ::recv(mine_.get(), into, size, 0);
            REQUIRE(n > 0);
            into += n;
            size -= static_cast<std::size_t>(n);
        }
    }

    Fd mine_;
};

std::string numbered(std::size_t bytes) {
    std::string all;
    for (int i = 0; all.size() < bytes; ++i) all += std::to_string(i) + "\n";
    all.resize(bytes);
    return all;
}

}  // namespace

TEST_CASE("given input is sent as the agent gives credit, and closed after it", "[unit][agent]") {
    HandPeer peer;
    const std::string given = numbered(1U << 20U);
    peer.handle->giveStdin(given);  // nobody has read anything yet
    std::string heard = peer.input(kInitialCredit);
    CHECK(heard.size() == kInitialCredit);
    peer.credit(1);
    heard += peer.input(1);
    CHECK(heard.size() == kInitialCredit + 1);
    peer.credit(100'000);
    heard += peer.input(100'000);
    CHECK(heard.size() == kInitialCredit + 100'001);
    peer.credit(2U << 20U);
    heard += peer.input(given.size() - heard.size());
    CHECK(heard == given);
    CHECK(peer.hear().first == FrameType::End);
    peer.tell(frame(FrameType::Reply, 2, kResult));
    CHECK(eventually([&] { return peer.sink->done(); }));
    CHECK(peer.lost == 0);
}

TEST_CASE("little or no input is given whole and closed at once", "[unit][agent]") {
    HandPeer peer;
    const std::string given = GENERATE(std::string(), std::string("little\n"));
    peer.handle->giveStdin(given);
    CHECK(peer.input(given.size()) == given);
    CHECK(peer.hear().first == FrameType::End);
}

TEST_CASE("given input ends with its execution and with its connection", "[unit][agent]") {
    HandPeer peer;
    peer.handle->giveStdin(numbered(1U << 20U));
    if (GENERATE(true, false)) {
        CHECK(peer.input(kInitialCredit).size() == kInitialCredit);
        peer.tell(frame(FrameType::Reply, 2, kResult));
        REQUIRE(eventually([&] { return peer.sink->done(); }));
        peer.handle->giveStdin("more");
        peer.handle->writeStdin("and more", 1s);  // goes nowhere, and does not wait
        CHECK(peer.lost == 0);
    } else {
        peer.hangUp();
        REQUIRE(eventually([&] { return peer.sink->done(); }));
        peer.handle->giveStdin("more");
        CHECK(eventually([&] { return peer.lost == 1; }));
    }
    CHECK(peer.sink->at(&Recorder::lasts_) == 1);
}
