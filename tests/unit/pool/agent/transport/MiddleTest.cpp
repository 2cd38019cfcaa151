#include <catch2/catch.hpp>
#include <functional>
#include <mutex>

#include "tests/support/Support.h"
#include "tests/unit/pool/agent/transport/PodSupport.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::pod;

namespace {

/// One connection between a server and an agent, through a third party that may do anything with
/// its bytes.
class Middle {
public:
    /// May change the bytes from the agent. Returns false to hang up.
    using Meddle = std::function<bool(std::string& bytes)>;

    Middle(std::uint16_t agent_port, Meddle meddle)
        : meddle_(std::move(meddle)), listener_(listenOnLoopback()), agent_port_(agent_port) {
        thread_ = std::jthread([this] { carry(); });
    }
    std::uint16_t port() const { return portOf(listener_); }

private:
    void carry() {
        const Fd server(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const Fd agent = connectTo(agent_port_).value();
        for (;;) {
            std::array<pollfd, 2> ends{{{server.get(), POLLIN, 0}, {agent.get(), POLLIN, 0}}};
            if (::poll(ends.data(), ends.size(), 20'000) <= 0) return;
            if (ends[0].revents != 0 && !pass(server, agent, {})) return;
            if (ends[1].revents != 0 && !pass(agent, server, meddle_)) return;
        }
    }
    static bool pass(const Fd& from, const Fd& to, const Meddle& meddle) {
        std::array<char, 65'536> piece;
        const ssize_t n = ::recv(from.get(), piece.data(), piece.size(), 0);
        if (n <= 0) return false;
        std::string bytes(piece.data(), static_cast<std::size_t>(n));
        if (meddle && !meddle(bytes)) return false;
        return ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
    }

    Meddle meddle_;
    Fd listener_;
    std::uint16_t agent_port_;
    std::jthread thread_;
};

/// A client that holds a workspace through a middle. After the bind, the middle obeys `evil`.
struct Robbed {
    explicit Robbed(Middle::Meddle evil)
        : middle(pod.port,
                 [this, evil = std::move(evil)](std::string& bytes) {
                     const std::lock_guard lock(mutex);
                     seen += bytes;
                     return !attacking || evil(bytes);
                 }),
          client(pod.client([this](secure::Purpose purpose) {
              PodAgent at = pod.at();
              if (purpose == secure::Purpose::Control) at.port = middle.port();
              return TcpDialer(pod.key, at, kPatience)(purpose);
          })) {
        client->bind(bindAs("c1"), kPatience);
        attacking = true;
    }

    Pod pod;
    std::atomic<bool> attacking{false};
    std::mutex mutex;
    std::string seen;  ///< guarded by mutex
    Middle middle;
    std::unique_ptr<AgentClient> client;
};

/// Returns the client's reason for its loss.
std::string reasonOf(Robbed& robbed) {
    CHECK_THROWS_AS(robbed.client->touch(), AgentLost);
    REQUIRE(hearth::test::eventually([&] { return robbed.pod.lost == 1; }));
    CHECK_FALSE(robbed.pod.broken);  // the agent is not at fault, and its workspace lives
    const auto again = robbed.pod.client();
    REQUIRE(again->hello().binding);
    CHECK(again->hello().binding->claim_id == "c1");
    return robbed.pod.why;
}

}  // namespace

TEST_CASE("a relay in the middle sees no secret, and can only end the connection",
          "[unit][agent][transport]") {
    SECTION("it changes a byte") {
        Robbed robbed([](std::string& bytes) {
            bytes.back() ^= 1;
            return true;
        });
        CHECK(reasonOf(robbed) == "the connection to the agent was tampered with");
        const std::lock_guard lock(robbed.mutex);
        CHECK(robbed.seen.size() > 500);
        CHECK(robbed.seen.find("hush") == std::string::npos);
        CHECK(robbed.seen.find("claimId") == std::string::npos);
    }
    SECTION("it says something in between") {
        Robbed robbed([](std::string& bytes) {
            bytes.insert(0, std::string("\x20\x00\x00\x00", 4) + std::string(32, 'x'));
            return true;
        });
        CHECK(reasonOf(robbed) == "the connection to the agent was tampered with");
    }
    SECTION("it says everything twice") {
        Robbed robbed([](std::string& bytes) {
            bytes += bytes;
            return true;
        });
        CHECK(reasonOf(robbed) == "the connection to the agent was tampered with");
    }
    SECTION("it hangs up") {
        Robbed robbed([](std::string&) { return false; });
        CHECK(reasonOf(robbed) == "the connection to the agent was cut");
    }
}

TEST_CASE("an agent announces its end, and no other process can", "[unit][agent][transport]") {
    Pod pod;
    const auto client = pod.client();
    client->bind(bindAs("c1"), kPatience);
    client->drain(1);
    REQUIRE(hearth::test::eventually([&] { return pod.lost == 1; }));
    CHECK(pod.why == "the agent closed the connection");
}

TEST_CASE("a newer server's connection replaces the one before, as on a Unix socket",
          "[unit][agent][transport]") {
    Pod pod;
    const auto first = pod.client();
    first->bind(bindAs("c1"), kPatience);
    const auto second = pod.client();
    REQUIRE(hearth::test::eventually([&] { return pod.lost == 1; }));
    CHECK(pod.why == "the agent closed the connection");
    CHECK(second->touch().time_since_epoch().count() > 0);
}
