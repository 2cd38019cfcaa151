#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/unit/pool/agent/client/Peer.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::test;
using namespace std::chrono_literals;

TEST_CASE("a request for files waits for a silent agent only until its deadline", "[unit][agent]") {
    ScriptedPeer peer;
    Poller poller;
    const bool at_hello = GENERATE(true, false);
    std::atomic<int> connections{0};
    AgentClient client(
        poller,
        [&] {
            if (connections++ == 0 || !at_hello)
                return peer.connect({frame(FrameType::Reply, 1, kHello)});
            return peer.connect({});
        },
        1, 300ms, [](const AgentLost&) {});
    const auto late = [](const std::function<void()>& ask) {
        try {
            ask();
        } catch (const Error& e) {
            return e.code() == ErrorCode::Deadline;
        }
        return false;
    };
    const auto begun = std::chrono::steady_clock::now();
    CHECK(late([&] { client.stat("f", 50ms); }));
    CHECK(late([&] { client.changes(TimePoint{}, 1, {}, 50ms); }));
    CHECK(late([&] {
        client.readFile(
            "f", 0, 0, [](const FileStat&) {}, [](std::string_view) { return true; }, 50ms);
    }));
    CHECK(std::chrono::steady_clock::now() - begun < 5s);  // with ten seconds each it would take 30
    CHECK_FALSE(client.lost());
}
