#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/tenants/TenantPlaces.h"

using namespace hearth;

TEST_CASE("four tenants that take all they can leave places for a fifth", "[unit][base]") {
    TenantPlaces places(1024, 256);
    std::vector<std::shared_ptr<void>> held;
    const auto most = [&](const std::string& tenant) {
        std::size_t count = 0;
        while (std::shared_ptr<void> place = places.take(tenant)) {
            held.push_back(std::move(place));
            ++count;
        }
        return count;
    };
    CHECK(most("alone") == 256);
    for (const std::string tenant : {"second", "third", "fourth"}) CHECK(most(tenant) > 100);
    CHECK(most("fifth") > 50);
    CHECK(places.take("sixth"));
    held.clear();
    CHECK(places.count() == 0);
    CHECK(most("alone") == 256);
}

TEST_CASE("a tenant is refused only if it has its share or all places are taken", "[unit][base]") {
    TenantPlaces places(4, 3);
    std::vector<std::shared_ptr<void>> held{places.take("a"), places.take("a")};
    CHECK_FALSE(places.take("a"));
    CHECK(places.held("a") == 2);
    CHECK(places.hasItsShare("a"));
    held.push_back(places.take("b"));
    CHECK_FALSE(places.take("b"));
    CHECK(places.hasItsShare("b"));
    held.push_back(places.take("c"));
    CHECK(held.back());
    CHECK_FALSE(places.take("d"));
    CHECK_FALSE(places.hasItsShare("d"));
}

TEST_CASE("places are not shared out if one tenant may have all", "[unit][base]") {
    TenantPlaces places(3, 3);
    const std::vector<std::shared_ptr<void>> held{places.take("a"), places.take("a"),
                                                  places.take("a")};
    CHECK(held.back());
    CHECK_FALSE(places.take("a"));
    CHECK_FALSE(places.take("b"));
}

TEST_CASE("a released place goes to the first waiter that may have it", "[unit][base]") {
    TenantPlaces places(4, 2);
    std::vector<std::shared_ptr<void>> held{places.take("a"), places.take("a"), places.take("b"),
                                            places.take("c")};
    REQUIRE(held.back());
    std::string order;
    const auto await = [&](const std::string& tenant) {
        return places.await(tenant, [&order, tenant] { order += tenant; });
    };
    const auto first = await("a");
    const auto second = await("d");
    const auto third = await("e");
    CHECK(order.empty());
    held[2].reset();  // tenant a may not have a third place
    CHECK(order == "d");
    CHECK(second->hasCome());
    CHECK_FALSE(first->hasCome());
    CHECK_FALSE(first->take());
    held[3].reset();
    CHECK(order == "de");
    CHECK_FALSE(places.take("f"));
    held.resize(1);
    CHECK(order == "de");  // the last free place is for a tenant without one
    held.clear();
    CHECK(order == "dea");
    CHECK(first->take());
    CHECK_FALSE(first->take());
    CHECK(places.count() == 2);
}

TEST_CASE("a waiter that leaves the line gets no place, and gives back one that it had",
          "[unit][base]") {
    TenantPlaces places(1, 1);
    std::shared_ptr<void> only = places.take("a");
    std::string order;
    auto gone = places.await("b", [&] { order += "b"; });
    auto waits = places.await("c", [&] { order += "c"; });
    const auto last = places.await("d", [&] { order += "d"; });
    gone.reset();
    only.reset();
    CHECK(order == "c");
    waits.reset();
    CHECK(order == "cd");
    only = last->take();
    CHECK(only);
    CHECK(places.count() == 1);
    only.reset();
    bool at_once = false;
    CHECK(places.await("a", [&] { at_once = true; })->hasCome());
    CHECK(at_once);
    CHECK(places.count() == 0);
}
