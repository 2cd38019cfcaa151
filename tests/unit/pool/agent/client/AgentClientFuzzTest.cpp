#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "tests/unit/pool/agent/client/Peer.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::test;
using namespace std::chrono_literals;

namespace {

constexpr int kIterations = 20'000;

constexpr std::string_view kShown = R"({"main":true,"mime":{"text/plain":"1"}})";

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
    return random() % limit;
}

void mutate(Random& random, std::string& bytes) {
    static constexpr std::string_view kInteresting = "{}[]\",:-019e.\\\0\xFF\x7F\x80";
    for (std::size_t i = below(random, 4) + 1; i > 0 && !bytes.empty(); --i) {
        const std::size_t at = below(random, bytes.size());
        switch (below(random, 6)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
                break;
            case 1:
                bytes[at] = kInteresting[below(random, kInteresting.size())];
                break;
            case 2:
                bytes.erase(at, below(random, 8) + 1);
                break;
            case 3:
                bytes.insert(at, bytes.substr(at, below(random, 40)));
                break;
            case 4:
                bytes.resize(at);
                break;
            default:
                bytes.insert(at, 1, static_cast<char>(random()));
                break;
        }
    }
}

/// Mutates the payloads and corrects the lengths, so that only the JSON is wrong.
std::string mutatedPayload(Random& random, FrameType type, std::uint32_t stream,
                           std::string_view payload) {
    std::string text(payload);
    mutate(random, text);
    return frame(type, stream, text.substr(0, kMaxPayload));
}

}  // namespace

TEST_CASE("mutated answers of an agent end in an answer, a refusal or a loss", "[unit][agent]") {
    Random random(20'261'121);
    ScriptedPeer peer;
    Poller poller;
    int answered = 0;
    int refused = 0;
    int lost = 0;
    for (int i = 0; i < kIterations; ++i) {
        const std::size_t operation = below(random, 5);
        std::string hello = frame(FrameType::Reply, 1, kHello);
        std::string answer;
        switch (operation) {
            case 0:
                answer = frame(FrameType::Reply, 2, R"({"lastActivityNs":1,"idleAtNs":2})");
                break;
            case 1:
                answer = frame(FrameType::Note, 2, kStarted) + output(2, 0, "abc") +
                         shown(2, 0, entry(kShown)) +
                         shown(2, kShown.size() + 4, entry(kShown).substr(0, 9)) +
                         shown(2, kShown.size() + 13, entry(kShown).substr(9)) +
                         frame(FrameType::Reply, 2, kResult);
                break;
            case 2:
                answer =
                    frame(FrameType::Error, 2, R"({"code":"DENIED","message":"m","x":{"y":1}})");
                break;
            case 3:
                answer = frame(FrameType::Reply, 2, kStat);
                break;
            default:
                answer = frame(FrameType::Note, 2, kStat) + frame(FrameType::Data, 2, "abc") +
                         frame(FrameType::Reply, 2, R"({"bytes":3})");
        }
        switch (below(random, 4)) {
            case 0:
                hello = mutatedPayload(random, FrameType::Reply, 1, kHello);
                break;
            case 1:
                answer = mutatedPayload(random, FrameType::Reply, 2, answer.substr(kHeaderSize));
                break;
            default:
                mutate(random, answer);
        }
        int connections = 0;
        try {
            AgentClient client(
                poller,
                [&] {
                    const bool data = connections++ > 0;
                    const bool scripted = data == (operation >= 3);
                    if (!scripted) return peer.connect({frame(FrameType::Reply, 1, kHello)});
                    return peer.connect({hello, answer}, true);
                },
                1, 2s, [](const AgentLost&) {});
            if (operation == 0 || operation == 2) {
                client.touch();
            } else if (operation == 1) {
                const auto sink = std::make_shared<Recorder>();
                ExecRequest request;
                request.id = "x";
                request.command = "echo";
                client.exec(request, sink);
                client.drive([&] { return sink->done(); }, 2s);
                REQUIRE(sink->at(&Recorder::lasts_) == 1);
            } else if (operation == 3) {
                client.stat("f");
            } else {
                std::string content;
                client.readFile(
                    "f", 0, 0, [](const FileStat&) {},
                    [&](std::string_view bytes) {
                        content += bytes;
                        return true;
                    });
            }
            ++answered;
        } catch (const AgentError&) {
            ++refused;
        } catch (const AgentLost&) {
            ++lost;
        }
    }
    INFO(answered << " answered, " << refused << " refused, " << lost << " lost");
    CHECK(answered > 0);
    CHECK(refused > 0);
    CHECK(lost > kIterations / 2);
}
