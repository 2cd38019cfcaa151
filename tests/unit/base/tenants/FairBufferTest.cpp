#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/tenants/FairBuffer.h"

namespace hearth {
namespace {

using Items = std::vector<std::string>;

Items textsIn(const FairBuffer<std::string>& buffer) {
    Items found;
    buffer.after(0, buffer.size(),
                 [&](std::uint64_t, const std::string& text) { found.push_back(text); });
    return found;
}

}  // namespace

TEST_CASE("a full buffer loses the oldest item of its heaviest group", "[unit][metrics]") {
    FairBuffer<std::string> buffer(4);
    CHECK(buffer.push("b", "b1") == 0);
    for (int i = 1; i <= 3; ++i) CHECK(buffer.push("a", "a" + std::to_string(i)) == 0);
    CHECK(buffer.push("a", "a4") == 1);
    CHECK(textsIn(buffer) == Items{"b1", "a2", "a3", "a4"});
    CHECK(buffer.push("b", "b2") == 1);
    CHECK(textsIn(buffer) == Items{"b1", "a3", "a4", "b2"});
    CHECK(buffer.push("b", "b3") == 1);
    CHECK(textsIn(buffer) == Items{"a3", "a4", "b2", "b3"});
    CHECK(buffer.push("c", "c1") == 1);  // of equal groups, the one with the oldest item loses
    CHECK(textsIn(buffer) == Items{"a4", "b2", "b3", "c1"});
}

TEST_CASE("a heavy item evicts no item of another group", "[unit][metrics]") {
    FairBuffer<std::string> buffer(10);
    buffer.push("a", "a1", 4);
    buffer.push("b", "b1", 4);
    CHECK(buffer.push("c", "heavy", 100) == 1);
    CHECK(textsIn(buffer) == Items{"a1", "b1"});
    CHECK(buffer.last() == 3);
    CHECK(buffer.push("a", "a2", 4) == 1);  // its weight left with it
    CHECK(textsIn(buffer) == Items{"b1", "a2"});
}

TEST_CASE("a buffer of too many groups keeps only the newest items", "[unit][metrics]") {
    FairBuffer<std::string> buffer(3);
    for (int i = 1; i <= 1000; ++i) buffer.push(std::to_string(i), std::to_string(i));
    CHECK(textsIn(buffer) == Items{"998", "999", "1000"});
}

TEST_CASE("ids of a buffer have gaps where items were lost", "[unit][metrics]") {
    FairBuffer<std::string> buffer(3);
    CHECK(buffer.before(5) == 0);
    buffer.push("b", "b1");
    for (int i = 1; i <= 5; ++i) buffer.push("a", "a" + std::to_string(i));
    CHECK(textsIn(buffer) == Items{"b1", "a4", "a5"});  // ids 1, 5 and 6
    CHECK(buffer.last() == 6);
    CHECK(buffer.before(0) == 6);
    CHECK(buffer.before(2) == 4);
    CHECK(buffer.before(3) == 0);
    CHECK(buffer.before(100) == 0);
    std::vector<std::uint64_t> ids;
    buffer.after(2, 1, [&](std::uint64_t id, const std::string&) { ids.push_back(id); });
    CHECK(ids == std::vector<std::uint64_t>{5});
}

TEST_CASE("an emptied buffer begins anew, but counts its ids on", "[unit][metrics]") {
    FairBuffer<std::string> buffer(2);
    buffer.push("a", "a1");
    buffer.push("b", "b1");
    CHECK(buffer.takeAll() == Items{"a1", "b1"});
    CHECK(buffer.empty());
    CHECK(buffer.push("a", "a2") == 0);
    CHECK(buffer.push("a", "a3") == 0);
    CHECK(buffer.last() == 4);
    CHECK(buffer.push("a", "a4") == 1);
    CHECK(textsIn(buffer) == Items{"a3", "a4"});
}

}  // namespace hearth
