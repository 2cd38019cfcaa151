#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/tenants/FairLine.h"

using hearth::FairLine;

namespace {

FairLine<int> lineOf(const std::vector<std::pair<std::string, int>>& items) {
    FairLine<int> line;
    for (const auto& [tenant, item] : items) line.push(tenant, item);
    return line;
}

std::vector<int> popped(FairLine<int> line) {
    std::vector<int> out;
    while (!line.empty()) out.push_back(line.pop());
    return out;
}

}  // namespace

TEST_CASE("tenants take turns, and the items of a tenant keep their order", "[unit][controller]") {
    const FairLine<int> line = lineOf({{"a", 1}, {"a", 2}, {"a", 3}, {"b", 4}, {"c", 5}, {"b", 6}});
    CHECK(line.size() == 6);
    CHECK(line.of("a") == 3);
    CHECK(line.of("z") == 0);
    CHECK(popped(line) == std::vector<int>{1, 4, 5, 2, 6, 3});
}

TEST_CASE("the place in line is the number of items served before it", "[unit][controller]") {
    const std::vector<std::pair<std::string, int>> items{{"a", 1}, {"a", 2}, {"a", 3},
                                                         {"b", 4}, {"c", 5}, {"b", 6}};
    const FairLine<int> line = lineOf(items);
    const std::vector<int> order = popped(line);
    for (const auto& [tenant, item] : items) {
        const auto at = std::find(order.begin(), order.end(), item);
        CHECK(line.before(tenant, item) == static_cast<std::size_t>(at - order.begin()));
    }
}

TEST_CASE("an erased item is not served, and the turns of other items stay", "[unit][controller]") {
    FairLine<int> line = lineOf({{"a", 1}, {"b", 2}, {"a", 3}, {"c", 4}});
    CHECK(line.erase("b", 2));
    CHECK_FALSE(line.erase("b", 2));
    CHECK_FALSE(line.erase("a", 99));
    CHECK(popped(line) == std::vector<int>{1, 4, 3});
}

TEST_CASE("an item erased at the head of the line uses up its tenant's turn",
          "[unit][controller]") {
    FairLine<int> line;
    for (const int a : {1, 2, 3}) line.push("a", a);
    line.push("b", 4);
    CHECK(line.erase("a", 2));  // it is not its turn
    CHECK(line.next() == 1);
    CHECK(line.erase("a", 1));
    CHECK(line.next() == 4);
    CHECK(line.erase("b", 4));
    CHECK(line.pop() == 3);
    CHECK(line.empty());
}

TEST_CASE("the tenant with most items gives up its newest until shares are equal",
          "[unit][controller]") {
    FairLine<int> line = lineOf({{"a", 1}, {"a", 2}, {"a", 3}, {"a", 4}});
    CHECK(line.displaceFor("a") == std::nullopt);
    CHECK(line.displaceFor("b") == 4);
    line.push("b", 5);
    CHECK(line.displaceFor("b") == 3);
    line.push("b", 6);
    CHECK(line.displaceFor("b") == std::nullopt);
    CHECK(line.displaceFor("a") == std::nullopt);
    CHECK(line.displaceFor("c").has_value());
}

TEST_CASE("a tenant that may not have its turn is passed over and keeps its place",
          "[unit][controller]") {
    FairLine<int> line = lineOf({{"a", 1}, {"b", 2}, {"a", 3}, {"b", 4}});
    const auto not_a = [](const std::string& tenant) { return tenant != "a"; };
    CHECK(line.popIf(not_a) == 2);
    CHECK(line.popIf(not_a) == 4);
    CHECK_FALSE(line.popIf(not_a));
    CHECK(popped(line) == std::vector<int>{1, 3});
}

TEST_CASE("an item uses as many of its tenant's turns as it costs", "[unit][controller]") {
    FairLine<int> line;
    line.push("a", 1, 1, 3);
    line.push("a", 2);
    for (const int b : {3, 4, 5, 6}) line.push("b", b);
    const std::vector<int> order = popped(line);
    CHECK(order == std::vector<int>{1, 3, 4, 5, 2, 6});
    for (std::size_t i = 0; i < order.size(); ++i) {
        CHECK(line.before(order[i] < 3 ? "a" : "b", order[i]) == i);
    }
    FairLine<int> weighted;
    weighted.push("a", 1, 4, 2);
    weighted.push("a", 2, 4, 2);
    weighted.push("a", 3, 4);
    weighted.push("b", 4);
    CHECK(popped(weighted) == std::vector<int>{1, 2, 4, 3});
}

TEST_CASE("a tenant that leaves the line and comes back still owes its turns",
          "[unit][controller]") {
    FairLine<int> line;
    line.push("a", 1, 1, 3);
    for (const int b : {2, 3, 4}) line.push("b", b);
    CHECK(line.pop() == 1);
    line.push("a", 5);
    CHECK(popped(line) == std::vector<int>{2, 3, 4, 5});
    // An empty line forgets: nobody had to wait for that turn.
    FairLine<int> empty;
    empty.push("a", 1, 1, 3);
    CHECK(empty.pop() == 1);
    empty.push("a", 2);
    empty.push("b", 3);
    CHECK(popped(empty) == std::vector<int>{2, 3});
}

TEST_CASE("tenants after a passed-over tenant still skip the turns that they owe",
          "[unit][controller]") {
    const auto not_a = [](const std::string& tenant) { return tenant != "a"; };
    const auto rest = [&](FairLine<int>& line) {
        std::vector<int> out;
        while (const int* next = line.nextIf([&](const auto& of, int) { return not_a(of); })) {
            out.push_back(*next);
            CHECK(line.popIf(not_a) == out.back());
        }
        return out;
    };
    FairLine<int> line;
    line.push("a", 0);
    line.push("b", 1, 1, 3);
    for (const int b : {2, 3}) line.push("b", b);
    for (const int c : {4, 5, 6}) line.push("c", c);
    CHECK(rest(line) == std::vector<int>{1, 4, 5, 6, 2, 3});
    // While nobody else may be served, it owes for no more than its last item.
    for (const int b : {11, 12, 13, 14, 15}) {
        line.push("b", b, 1, 3);
        CHECK(line.popIf(not_a) == b);
    }
    line.push("b", 16);
    for (const int c : {21, 22, 23, 24}) line.push("c", c);
    CHECK(rest(line) == std::vector<int>{21, 22, 16, 23, 24});
    CHECK(popped(line) == std::vector<int>{0});
}
