#include <catch2/catch.hpp>
#include <vector>

#include "api/http/admission/NewsPlaces.h"

using namespace hearth;
using namespace hearth::api;

namespace {

struct Holder {
    NewsPlaces places;
    std::vector<NewsPlaces::PlacePtr> held{};
    std::uint64_t next = 1;

    /// Takes a place. Returns the connection that had to give up its place; 0: none.
    std::uint64_t take(const std::string& tenant, const std::string& token) {
        NewsPlaces::Taken taken = places.take(tenant, token, next++);
        REQUIRE(taken.place);
        held.push_back(taken.place);
        if (!taken.gave_up) return 0;
        CHECK(taken.gave_up->given_up);
        const std::uint64_t gone = taken.gave_up->connection;
        std::erase(held, taken.gave_up);
        return gone;
    }
};

}  // namespace

TEST_CASE("a token over its limit of news streams loses its oldest one", "[unit][http]") {
    Holder holder{NewsPlaces({.all = 100, .of_tenant = 50, .of_token = 2})};
    CHECK(holder.take("t", "one") == 0);
    CHECK(holder.take("t", "other") == 0);
    CHECK(holder.take("t", "one") == 0);
    CHECK(holder.take("t", "one") == 1);
    CHECK(holder.take("t", "one") == 3);
    CHECK(holder.places.count() == 3);
}

TEST_CASE("the busiest token of a full tenant, or tenant of a full server, loses a stream",
          "[unit][http]") {
    Holder tenant{NewsPlaces({.all = 100, .of_tenant = 4, .of_token = 3})};
    CHECK(tenant.take("t", "modest") == 0);
    for (int i = 0; i < 3; ++i) CHECK(tenant.take("t", "greedy") == 0);
    CHECK(tenant.take("t", "third") == 2);
    CHECK(tenant.take("u", "greedy") == 0);

    Holder all{NewsPlaces({.all = 5, .of_tenant = 5, .of_token = 5})};
    CHECK(all.take("modest", "m") == 0);
    CHECK(all.take("greedy", "a") == 0);
    for (int i = 0; i < 3; ++i) CHECK(all.take("greedy", "b") == 0);
    CHECK(all.take("third", "x") == 3);  // the third was held by the greedy tenant's busiest token
    CHECK(all.places.count() == 5);
}

TEST_CASE("a place that is given back is free", "[unit][http]") {
    Holder holder{NewsPlaces({.all = 1, .of_tenant = 1, .of_token = 1})};
    CHECK(holder.take("t", "one") == 0);
    holder.held.clear();
    CHECK(holder.places.count() == 0);
    CHECK(holder.take("u", "other") == 0);
    NewsPlaces none({.all = 0, .of_tenant = 1, .of_token = 1});
    CHECK_FALSE(none.take("t", "one", 1).place);
}
