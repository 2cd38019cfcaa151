#include <catch2/catch.hpp>
#include <stdexcept>

#include "tests/unit/fake/runtime/Support.h"

using namespace hearth;
using namespace hearth::pool::test;
using namespace std::chrono_literals;

namespace {

agent::FileStat put(AgentClient& client, const std::string& path, const std::string& text) {
    std::size_t sent = 0;
    return client.writeFile(path, 0600, [&](char* out, std::size_t room) {
        const std::size_t n = std::min(room, text.size() - sent);
        text.copy(out, n, sent);
        sent += n;
        return n;
    });
}

std::string get(AgentClient& client, const std::string& path, std::uint64_t offset = 0,
                std::uint64_t length = 0) {
    std::string text;
    client.readFile(
        path, offset, length, [](const agent::FileStat&) {},
        [&](std::string_view bytes) {
            text += bytes;
            return true;
        });
    return text;
}

}  // namespace

TEST_CASE("files are written whole, read in parts and listed", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    std::string big(3'000'000, '\0');
    for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 7 / 5);
    const auto written = put(*client, "a/b/big", big);
    CHECK(written.size == big.size());
    CHECK(written.mode == 0600);
    CHECK(get(*client, "a/b/big") == big);
    CHECK(get(*client, "a/b/big", 1000, 10) == big.substr(1000, 10));
    CHECK(get(*client, "a/b/big", 4'000'000).empty());
    put(*client, "empty", "");
    CHECK(get(*client, "empty").empty());

    client->makeDirectory("c");
    client->move("a/b", "c/d");
    CHECK(client->stat("c/d/big").size == big.size());
    CHECK(client->list("", true, 100, "").items.size() == 5);
    const auto page = client->list("", false, 2, "");
    CHECK(page.items.size() == 2);
    CHECK(client->list("", false, 2, page.next).items.size() == 1);
    CHECK(client->changes(TimePoint{}, 10).items.size() == 2);
    CHECK_FALSE(client->changes(TimePoint{}, 2).more);
    CHECK(client->changes(TimePoint{}, 1).more);
    CHECK(client->changes(TimePoint{}, 10, {"e*"}).items.size() == 1);
    CHECK(client->usage().disk_used == big.size());
    client->remove("c", true);
    CHECK(agentCodeOf([&] { client->stat("c/d/big"); }) == "NOT_FOUND");
    CHECK(agentCodeOf([&] { get(*client, "nothing"); }) == "NOT_FOUND");
    CHECK(agentCodeOf([&] { put(*client, "../x", "y"); }) == "BAD_PATH");
    CHECK(agentCodeOf([&] { put(*client, "a", "y"); }) == "IS_A_DIRECTORY");
    CHECK(house.lost == 0);
}

TEST_CASE("a write that fails on this side leaves nothing", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    int calls = 0;
    CHECK_THROWS_AS(client->writeFile("f", std::nullopt,
                                      [&](char*, std::size_t room) -> std::size_t {
                                          if (++calls == 4)
                                              throw std::domain_error("the source broke");
                                          return room;
                                      }),
                    std::domain_error);
    CHECK(client->list("", true, 10, "").items.empty());
}

TEST_CASE("a reader may stop early or throw", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    put(*client, "f", std::string(2'000'000, 'x'));
    std::size_t heard = 0;
    client->readFile(
        "f", 0, 0, [](const agent::FileStat&) {},
        [&](std::string_view bytes) {
            heard += bytes.size();
            return false;
        });
    CHECK(heard > 0);
    CHECK(heard < 300'000);
    CHECK_THROWS_AS(client->readFile(
                        "f", 0, 0, [](const agent::FileStat&) {},
                        [](std::string_view) -> bool { throw std::domain_error("x"); }),
                    std::domain_error);
    CHECK(client->stat("f").size == 2'000'000);
    CHECK(house.lost == 0);
}

TEST_CASE("nothing works on the files of an unbound sandbox", "[unit][runtime][agent]") {
    House house;
    const auto client = house.client();
    CHECK(agentCodeOf([&] { client->stat("f"); }) == "NOT_BOUND");
    client->bind(claim("c"), 5s);
    CHECK(agentCodeOf([&] { client->stat("f"); }) == "NOT_FOUND");
}
