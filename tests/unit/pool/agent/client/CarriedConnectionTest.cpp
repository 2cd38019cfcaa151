#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/Mutex.h"
#include "tests/support/Sockets.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/agent/transport/PodSupport.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::pod;

namespace {

/// The sink for connections to the way out of a sandbox that is reached over TCP.
struct Egress final : EgressSink {
    void connected(Fd) override { ++passed; }
    void announced(std::int64_t connection) override {
        const MutexLock lock(mutex);
        numbers.push_back(connection);
    }
    void refused(const std::string&) override { refusals = refusals + 1; }

    std::size_t count() {
        const MutexLock lock(mutex);
        return numbers.size();
    }
    std::int64_t next() {
        if (!hearth::test::eventually([&] { return count() > 0; }))
            throw std::runtime_error("none comes");
        const MutexLock lock(mutex);
        const std::int64_t first = numbers.front();
        numbers.pop_front();
        return first;
    }

    Mutex mutex;
    std::deque<std::int64_t> numbers HEARTH_GUARDED_BY(mutex);
    std::atomic<int> passed{0};
    std::atomic<int> refusals{0};
};

std::uint16_t freePort() {
    return portOf(listenOnLoopback());
}

/// A bound sandbox with its way out, which also makes its tenant's connections.
struct Sandbox {
    explicit Sandbox(std::uint32_t granted = 8) {
        client->bind(bindAs("c1"), kPatience);
        handle = client->broker(port, sink);
        handle->grant(granted);
        run(*client, "x", "true");  // its answer proves that the port is open
    }
    Fd tenant() const {
        auto made = connectTo(port);
        if (!made) throw std::runtime_error("nobody listens");
        return std::move(*made);
    }
    /// Returns the next connection, and a pointer that expires when the connection's place is free.
    std::pair<TakenConnection, std::weak_ptr<int>> take() {
        auto place = std::make_shared<int>(1);
        std::weak_ptr<int> weak = place;
        return {handle->take(sink->next(), std::move(place)), weak};
    }

    Pod pod;
    std::uint16_t port = freePort();
    std::unique_ptr<AgentClient> client = pod.client();
    std::shared_ptr<Egress> sink = std::make_shared<Egress>();
    std::shared_ptr<EgressHandle> handle;
};

/// Returns whether the connection ends with a reset.
bool breaks(const Fd& fd) {
    char byte = 0;
    for (;;) {
        pollfd wait{fd.get(), POLLIN, 0};
        if (::poll(&wait, 1, 20'000) <= 0) return false;
        const ssize_t n = ::recv(fd.get(), &byte, 1, 0);
        if (n <= 0) return n < 0 && errno == ECONNRESET;
    }
}

}  // namespace

TEST_CASE("without descriptors a tenant's connection is carried whole, in both directions",
          "[unit][agent][transport][egress]") {
    Sandbox sandbox;
    const Fd tenant = sandbox.tenant();
    auto [taken, place] = sandbox.take();
    const std::string up = hearth::test::bytesOf(3'000'000);
    const std::string down = hearth::test::bytesOf(5'000'001);
    std::string got_up;
    std::string got_down;
    {
        const std::jthread other([&, &socket = taken.socket] {
            got_up = hearth::test::readFrom(socket, up.size());
            hearth::test::writeTo(socket, down);
        });
        const std::jthread reader([&] { got_down = hearth::test::readFrom(tenant, down.size()); });
        hearth::test::writeTo(tenant, up);
    }
    CHECK(got_up == up);
    CHECK(got_down == down);

    SECTION("its end is an end, after the last byte, and frees the place") {
        hearth::test::writeTo(taken.socket, "the last");
        taken.socket.reset();
        CHECK(hearth::test::readFrom(tenant, 100) == "the last");
        CHECK(hearth::test::eventually([&, &weak = place] { return weak.expired(); }));
    }
    SECTION("half of it may end first, either half") {
        REQUIRE(::shutdown(tenant.get(), SHUT_WR) == 0);
        CHECK(hearth::test::readFrom(taken.socket, 100).empty());
        hearth::test::writeTo(taken.socket, "still");
        REQUIRE(::shutdown(taken.socket.get(), SHUT_WR) == 0);
        CHECK(hearth::test::readFrom(tenant, 100) == "still");
        taken.socket.reset();
        CHECK(hearth::test::eventually([&, &weak = place] { return weak.expired(); }));
    }
    SECTION("a broken answer breaks, and is not taken for a whole one") {
        taken.reset();
        taken.socket.reset();
        CHECK(breaks(tenant));
        CHECK(hearth::test::eventually([&, &weak = place] { return weak.expired(); }));
    }
    SECTION("a tenant that breaks it ends it") {
        const linger at_once{1, 0};
        ::setsockopt(tenant.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        const_cast<Fd&>(tenant).reset();
        CHECK(hearth::test::readFrom(taken.socket, 100).empty());
        CHECK(hearth::test::eventually([&, &weak = place] { return weak.expired(); }));
    }
    SECTION("when the agent goes, it ends") {
        sandbox.client->drain(1);
        CHECK(hearth::test::readFrom(taken.socket, 100).empty());
        CHECK(hearth::test::eventually([&, &weak = place] { return weak.expired(); }));
    }
}

TEST_CASE("a tenant that does not read stops its own connection only, and loses nothing at its end",
          "[unit][agent][transport][egress]") {
    Sandbox sandbox;
    const Fd slow = sandbox.tenant();
    auto [to_slow, slow_place] = sandbox.take();
    const std::size_t sent = hearth::test::fillUp(to_slow.socket, std::string(65'536, 'x'));
    CHECK(sent > 0);
    to_slow.socket.reset();

    const Fd quick = sandbox.tenant();
    auto [to_quick, quick_place] = sandbox.take();
    const std::string bytes = hearth::test::bytesOf(2'000'000);
    std::jthread writer([&, &socket = to_quick.socket] { hearth::test::writeTo(socket, bytes); });
    CHECK(hearth::test::readFrom(quick, bytes.size()) == bytes);
    writer.join();
    CHECK_FALSE(slow_place.expired());

    CHECK(hearth::test::readFrom(slow, sent + 1).size() == sent);
    CHECK(hearth::test::eventually([&, &weak = slow_place] { return weak.expired(); }));
}

TEST_CASE("no more connections come than were granted; the rest waits",
          "[unit][agent][transport][egress]") {
    Sandbox sandbox(2);
    std::array<Fd, 3> tenants{sandbox.tenant(), sandbox.tenant(), sandbox.tenant()};
    auto first = sandbox.take();
    auto second = sandbox.take();
    run(*sandbox.client, "y", "true");
    CHECK(sandbox.sink->count() == 0);
    sandbox.handle->grant(1);
    auto third = sandbox.take();
    hearth::test::writeTo(third.first.socket, "3");
    CHECK(hearth::test::readFrom(tenants[2], 1) == "3");
    CHECK(sandbox.sink->passed == 0);
}

TEST_CASE("a connection announced to another server, or never announced, is at its end",
          "[unit][agent][transport][egress]") {
    Sandbox sandbox;
    const Fd tenant = sandbox.tenant();
    const std::int64_t number = sandbox.sink->next();
    const auto other = std::make_shared<Egress>();
    const auto handle = sandbox.client->broker(sandbox.port, other);
    CHECK(hearth::test::readFrom(tenant, 1).empty());  // nobody can take it any more
    CHECK(hearth::test::eventually([&] { return sandbox.sink->refusals == 1; }));
    for (const std::int64_t wrong : {number, std::int64_t{99}, std::int64_t{-1}}) {
        const TakenConnection taken = handle->take(wrong, nullptr);
        CHECK(hearth::test::readFrom(taken.socket, 1).empty());
    }
    CHECK(sandbox.client->touch().time_since_epoch().count() > 0);
}

TEST_CASE("thirty connections at once share one data connection",
          "[unit][agent][transport][egress]") {
    constexpr std::size_t kMany = 30;
    Sandbox sandbox(kMany);
    std::vector<Fd> tenants;
    std::vector<std::pair<TakenConnection, std::weak_ptr<int>>> taken;
    for (std::size_t i = 0; i < kMany; ++i) {
        tenants.push_back(sandbox.tenant());
        taken.push_back(sandbox.take());
    }
    const std::string bytes = hearth::test::bytesOf(400'000);
    std::vector<std::jthread> threads;
    for (auto& one : taken) {
        threads.emplace_back([&one, &bytes] {
            hearth::test::writeTo(one.first.socket, bytes);
            one.first.socket.reset();
        });
    }
    for (const Fd& tenant : tenants)
        CHECK(hearth::test::readFrom(tenant, bytes.size() + 1) == bytes);
    threads.clear();
    // File operations still find their places.
    CHECK(sandbox.client->list(".", false, 10, "").items.empty());
    for (auto& one : taken) {
        CHECK(hearth::test::eventually([&, &weak = one.second] { return weak.expired(); }));
    }
}
