#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>

#include "base/Error.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/docker/SocketHandover.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using hearth::pool::docker::SocketHandover;
using hearth::test::TempDir;

namespace {

Fd receive(const Fd& from) {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(from.get(), &message, MSG_CMSG_CLOEXEC) != 1) return Fd();
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return Fd(fd);
}

}  // namespace

TEST_CASE("an agent gets the listening socket and says when it is ready", "[unit][docker]") {
    const TempDir folder;
    const Fd listening = pool::listenAt(folder.file("agent.sock"), 0600);
    {
        SocketHandover handover(folder.file("start"));
        auto agent = std::async(std::launch::async, [&] {
            const Fd connection = pool::connectTo(folder.file("start/socket"));
            Fd socket = receive(connection);
            ::send(connection.get(), "", 1, MSG_NOSIGNAL);
            return socket;
        });
        handover.give(listening.get(), soon(), [] {});
        const Fd theirs = agent.get();
        const Fd client = pool::connectTo(folder.file("agent.sock"));
        CHECK(Fd(::accept(theirs.get(), nullptr, nullptr)).get() >= 0);
    }
    CHECK_FALSE(std::filesystem::exists(folder.file("start")));
}

TEST_CASE("an agent that ends before it is ready is no sandbox", "[unit][docker]") {
    const TempDir folder;
    const Fd listening = pool::listenAt(folder.file("agent.sock"), 0600);
    SocketHandover handover(folder.file("start"));
    const Fd gone = pool::connectTo(folder.file("start/socket"));
    ::shutdown(gone.get(), SHUT_RDWR);
    CHECK_THROWS_AS(handover.give(listening.get(), soon(), [] {}), std::exception);
}

TEST_CASE("a wait for an agent ends when its container has ended", "[unit][docker]") {
    const TempDir folder;
    const Fd listening = pool::listenAt(folder.file("agent.sock"), 0600);
    SocketHandover handover(folder.file("start"));
    CHECK_THROWS_AS(
        handover.give(listening.get(), soon(), [] { throw std::domain_error("it has ended"); }),
        std::domain_error);
    CHECK_THROWS_AS(SocketHandover(folder.file("start")), Error);  // a second one of the same name
}
