#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/docker/remote/RelayPump.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using hearth::http::ClientConnection;
using hearth::pool::docker::RawStream;
using hearth::pool::docker::RelayPump;

namespace {

std::string frame(const std::string& payload) {
    std::string bytes{1, 0, 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(payload.size() >> shift & 0xFFU);
    }
    return bytes + payload;
}

/// A relay whose far side is the test's.
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

void put(const Fd& fd, const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t n = ::send(fd.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (n <= 0) return;
        at += static_cast<std::size_t>(n);
    }
}

/// Up to `size` bytes; fewer at the end of the connection.
std::string take(const Fd& fd, std::size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
        pollfd polled{fd.get(), POLLIN, 0};
        if (::poll(&polled, 1, 10'000) <= 0) throw std::runtime_error("nothing comes");
        char piece[65'536];
        const ssize_t n = ::recv(fd.get(), piece, std::min(sizeof piece, size - bytes.size()), 0);
        if (n <= 0) break;
        bytes.append(piece, static_cast<std::size_t>(n));
    }
    return bytes;
}

/// How many bytes a side takes before it takes no more.
std::size_t fillUp(const Fd& fd, const std::string& piece) {
    std::size_t sent = 0;
    for (;;) {
        const ssize_t n = ::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
            continue;
        }
        pollfd polled{fd.get(), POLLOUT, 0};
        if (::poll(&polled, 1, 200) <= 0) return sent;
    }
}

}  // namespace

TEST_CASE("a relay carries both directions, and what came before it began", "[unit][docker]") {
    RelayPump pump;
    const Wire wire(pump, "early ");
    put(wire.engine, frame("and ") + frame("late"));
    CHECK(take(wire.server, 14) == "early and late");
    put(wire.server, "hello");
    CHECK(take(wire.engine, 5) == "hello");
    const std::string much(3'000'000, 'x');
    std::jthread writer([&] { put(wire.engine, frame(much)); });
    CHECK(take(wire.server, much.size()) == much);
}

TEST_CASE("the end of one side of a relay is the end of the other", "[unit][docker]") {
    RelayPump pump;
    Wire first(pump);
    put(first.server, "last words");
    first.server.reset();
    CHECK(take(first.engine, 100) == "last words");
    Wire second(pump);
    put(second.engine, frame("last words"));
    second.engine.reset();
    CHECK(take(second.server, 100) == "last words");
}

TEST_CASE("bytes that are no raw stream end their relay, and no other", "[unit][docker]") {
    RelayPump pump;
    const Wire bad(pump);
    const Wire good(pump);
    put(bad.engine, "OCI runtime exec failed");
    CHECK(take(bad.server, 100).empty());
    CHECK(take(bad.engine, 100).empty());
    put(good.engine, frame("fine"));
    CHECK(take(good.server, 4) == "fine");
}

TEST_CASE("a side that does not read stops only its own relay, within bounds", "[unit][docker]") {
    RelayPump pump;
    const Wire stalled(pump);
    const Wire other(pump);
    // Twice the kernel's own buffers may hold some, too.
    CHECK(fillUp(stalled.engine, frame(std::string(10'000, 'x'))) < 3'000'000);
    CHECK(fillUp(stalled.server, std::string(10'000, 'x')) < 3'000'000);
    put(other.engine, frame("fine"));
    CHECK(take(other.server, 4) == "fine");
}

TEST_CASE("the end of the pump ends all relays", "[unit][docker]") {
    auto pump = std::make_unique<RelayPump>();
    const Wire wire(*pump);
    pump.reset();
    CHECK(take(wire.server, 1).empty());
    CHECK(take(wire.engine, 1).empty());
}
