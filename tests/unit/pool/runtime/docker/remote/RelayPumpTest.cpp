#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/docker/remote/RelayPump.h"
#include "tests/support/Sockets.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using hearth::http::ClientConnection;
using hearth::pool::docker::RawStream;
using hearth::pool::docker::RelayPump;

namespace {

std::string outputFrame(const std::string& payload) {
    std::string bytes{1, 0, 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(payload.size() >> shift & 0xFFU);
    }
    return bytes + payload;
}

/// A relay whose far side the test holds.
struct Wire {
    explicit Wire(RelayPump& pump, std::string early = {}) {
        std::string name = (std::filesystem::temp_directory_path() / "pump-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        const std::string socket = name + "/s";
        const Fd listening = pool::listenAt(socket, 0600);
        ClientConnection stream({.name = socket, .socket = socket}, {.until = soon()});
        engine = Fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::filesystem::remove_all(name);
        server = pump.carry(std::move(stream), RawStream(), std::move(early));
    }
    Fd engine;
    Fd server;
};

}  // namespace

TEST_CASE("a relay carries both directions, and the bytes from before its start",
          "[unit][docker]") {
    RelayPump pump;
    const Wire wire(pump, "early ");
    hearth::test::writeTo(wire.engine, outputFrame("and ") + outputFrame("late"));
    CHECK(hearth::test::readFrom(wire.server, 14) == "early and late");
    hearth::test::writeTo(wire.server, "hello");
    CHECK(hearth::test::readFrom(wire.engine, 5) == "hello");
    const std::string much(3'000'000, 'x');
    std::jthread writer([&] { hearth::test::writeTo(wire.engine, outputFrame(much)); });
    CHECK(hearth::test::readFrom(wire.server, much.size()) == much);
}

TEST_CASE("the end of one side of a relay is the end of the other", "[unit][docker]") {
    RelayPump pump;
    Wire first(pump);
    hearth::test::writeTo(first.server, "last words");
    first.server.reset();
    CHECK(hearth::test::readFrom(first.engine, 100) == "last words");
    Wire second(pump);
    hearth::test::writeTo(second.engine, outputFrame("last words"));
    second.engine.reset();
    CHECK(hearth::test::readFrom(second.server, 100) == "last words");
}

TEST_CASE("bytes that are no raw stream end their relay, and no other", "[unit][docker]") {
    RelayPump pump;
    const Wire bad(pump);
    const Wire good(pump);
    hearth::test::writeTo(bad.engine, "OCI runtime exec failed");
    CHECK(hearth::test::readFrom(bad.server, 100).empty());
    CHECK(hearth::test::readFrom(bad.engine, 100).empty());
    hearth::test::writeTo(good.engine, outputFrame("fine"));
    CHECK(hearth::test::readFrom(good.server, 4) == "fine");
}

TEST_CASE("a side that does not read stops only its own relay, within bounds", "[unit][docker]") {
    RelayPump pump;
    const Wire stalled(pump);
    const Wire other(pump);
    // The kernel's own buffers on both sides may hold some, too.
    CHECK(hearth::test::fillUp(stalled.engine, outputFrame(std::string(10'000, 'x'))) < 3'000'000);
    CHECK(hearth::test::fillUp(stalled.server, std::string(10'000, 'x')) < 3'000'000);
    hearth::test::writeTo(other.engine, outputFrame("fine"));
    CHECK(hearth::test::readFrom(other.server, 4) == "fine");
}

TEST_CASE("the end of the pump ends all relays", "[unit][docker]") {
    auto pump = std::make_unique<RelayPump>();
    const Wire wire(*pump);
    pump.reset();
    CHECK(hearth::test::readFrom(wire.server, 1).empty());
    CHECK(hearth::test::readFrom(wire.engine, 1).empty());
}
