#include <catch2/catch.hpp>

#include "api/http/front/ConnectionTable.h"
#include "api/http/front/ConnectionTimers.h"

using namespace hearth;
using namespace hearth::api;
using Place = Connection::Place;

namespace {

struct Table {
    ManualClock clock;
    FrontOptions options;
    ConnectionTable connections{options, clock};
    ConnectionTimers timers;
    std::uint64_t next = 2;

    Connection& add(const std::string& address, Place place, bool served = false) {
        auto connection = std::make_unique<Connection>();
        connection->id = next++;
        connection->counted_as = address;
        connection->accepted_at = clock.now();
        connection->place = place;
        connection->served = served;
        return connections.add(std::move(connection));
    }
};

}  // namespace

TEST_CASE("a connection counts for its address until it is uncounted or taken out",
          "[unit][http]") {
    Table table;
    Connection& first = table.add("a", Place::Reading);
    table.add("a", Place::Reading);
    CHECK(table.connections.countOf("a") == 2);
    table.connections.uncount(first);
    table.connections.uncount(first);
    CHECK(table.connections.countOf("a") == 1);
    const std::uint64_t id = first.id;
    CHECK(table.connections.find(id) == &first);
    CHECK(table.connections.take(first));
    CHECK(table.connections.find(id) == nullptr);
    CHECK(table.connections.countOf("a") == 1);
    CHECK(table.connections.size() == 1);
    CHECK(table.connections.countOf("b") == 0);
}

TEST_CASE("an idle connection makes room before a new one, and one at work never does",
          "[unit][http]") {
    Table table;
    table.add("a", Place::AtWorker);
    CHECK(table.connections.leastOf("a") == nullptr);
    Connection& fresh = table.add("a", Place::Reading);
    CHECK(table.connections.leastOf("a") == &fresh);
    Connection& idle = table.add("a", Place::Reading, true);
    table.add("a", Place::Reading, true);  // the oldest goes
    CHECK(table.connections.leastOf("a") == &idle);
    CHECK(table.connections.leastOf("b") == nullptr);
}

TEST_CASE("the busiest address makes room, but its new connection outlives another's idle one",
          "[unit][http]") {
    Table table;
    Connection& other = table.add("b", Place::Reading, true);
    table.add("a", Place::Reading);
    Connection& many = table.add("a", Place::Reading, true);
    CHECK(table.connections.leastOfAll() == &many);
    many.served = false;
    CHECK(table.connections.leastOfAll() == &other);
}

TEST_CASE("a timer fires at the last deadline that was set, once", "[unit][http]") {
    Table table;
    Connection& connection = table.add("a", Place::Reading);
    const TimePoint now = table.clock.now();
    using std::chrono::seconds;
    CHECK(table.timers.next() == TimePoint::max());
    table.timers.set(connection, now + seconds(1));
    table.timers.set(connection, now + seconds(3));
    CHECK(table.timers.next() == now + seconds(1));
    CHECK(table.timers.due(now + seconds(2), table.connections) == nullptr);
    CHECK(table.timers.next() == now + seconds(3));
    table.timers.set(connection, now + seconds(2));
    CHECK(table.timers.due(now + seconds(2), table.connections) == &connection);
    CHECK(table.timers.due(now + seconds(9), table.connections) == nullptr);
    table.timers.set(connection, now + seconds(9));
    CHECK(table.connections.take(connection));
    CHECK(table.timers.due(now + seconds(9), table.connections) == nullptr);
}
