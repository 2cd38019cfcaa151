#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>

#include "pool/agent/client/AgentClient.h"
#include "pool/agent/client/Transfers.h"

namespace hearth::agent {
namespace {

bool isOpen(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0;
}

}  // namespace

TEST_CASE("a cut closes the files of all transfers, and lets no new one begin", "[unit][agent]") {
    Transfers transfers;
    Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Fd second(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int first_number = first.get();
    const int second_number = second.get();
    const Transfers::File waits_for_a_client(transfers, std::move(first));
    const Transfers::File reads(transfers, std::move(second));
    std::shared_ptr<const Fd> under_way = reads.use();
    CHECK(isOpen(first_number));

    transfers.cut();
    CHECK_FALSE(isOpen(first_number));
    CHECK(isOpen(second_number));  // it closes after the read under way
    under_way.reset();
    CHECK_FALSE(isOpen(second_number));
    CHECK_THROWS_AS(waits_for_a_client.use(), AgentLost);
    Fd late(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    CHECK_THROWS_AS(Transfers::File(transfers, std::move(late)), AgentLost);
    transfers.cut();
}

TEST_CASE("a transfer that has ended is forgotten", "[unit][agent]") {
    Transfers transfers;
    {
        Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const Transfers::File done(transfers, std::move(fd));
    }
    transfers.cut();
}

}  // namespace hearth::agent
