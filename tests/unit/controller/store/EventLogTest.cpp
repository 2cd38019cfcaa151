#include <algorithm>

#include "controller/store/EventLog.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/Principals.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

Event event(const std::string& tenant, const std::string& type = "workspace.created") {
    Event out;
    out.type = type;
    out.tenant = tenant;
    out.resource = "ws_" + tenant;
    return out;
}

const Principal kUser{"a", Role::User, ""};

}  // namespace

TEST_CASE("a tenant sees its own events and operators see all", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    EventLog events(journal, desk.clock);
    events.publish(event("a"));
    events.publish(event("b"));
    events.publish(event("", "sandbox.ready"));
    CHECK(events.list(kUser, {}).size() == 1);
    CHECK(events.list(kUser, {}).front().resource == "ws_a");
    CHECK(events.list({"", Role::User, ""}, {}).empty());  // no tenant: seen by no user
    CHECK(events.list(kOperator, {}).size() == 3);
    EventQuery query;
    query.type = "sandbox.ready";
    CHECK(events.list(kOperator, query).size() == 1);
    query = {};
    query.resource = "ws_b";
    CHECK(events.list(kOperator, query).size() == 1);
    query = {};
    query.limit = 2;
    CHECK(events.list(kOperator, query).size() == 2);
    query.since = events.list(kOperator, query).back().id;
    CHECK(events.list(kOperator, query).size() == 1);
}

TEST_CASE("event ids increase also across restarts and a lost file", "[unit][controller]") {
    Desk desk;
    std::uint64_t last = 0;
    for (std::size_t life = 0; life < 4; ++life) {
        if (life == 3) {
            for (const char* suffix : {"", "-wal", "-shm"}) {
                std::filesystem::remove(desk.path + suffix);
            }
        }
        Journal journal(desk.path, desk.clock, desk.log);
        EventLog events(journal, desk.clock);
        for (int i = 0; i < 5; ++i) events.publish(event("a"));
        EventQuery query;
        query.since = last;
        const auto fresh = events.list(kOperator, query);
        CHECK(fresh.size() == 5);
        for (const Event& each : fresh) {
            CHECK(each.id > last);
            last = each.id;
        }
        CHECK(events.list(kOperator, {}).size() == (life == 3 ? 5U : 5U * (life + 1)));
        desk.clock.advance(std::chrono::seconds(1));
    }
}

TEST_CASE("subscribers hear of each event until they leave", "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    EventLog events(journal, desk.clock);
    int heard = 0;
    auto subscription = events.subscribe([&] { ++heard; });
    events.publish(event("a"));
    events.publish(event("b"));
    CHECK(heard == 2);
    subscription.reset();
    events.publish(event("a"));
    CHECK(heard == 2);
}

TEST_CASE("a tenant with many events loses its own oldest ones, and nobody else's",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    EventLog events(journal, desk.clock);
    events.publish(event("a", "first"));
    for (int i = 0; i < 5; ++i) events.publish(event("b", "early"));
    for (int i = 0; i < 1'500; ++i) events.publish(event("b"));
    events.publish(event("", "pool.changed"));
    EventQuery query;
    query.limit = 2'000;
    const auto all = events.list(kOperator, query);
    CHECK(all.size() == 1'000);
    CHECK(all.front().type == "first");
    CHECK(all.back().type == "pool.changed");
    CHECK(std::none_of(all.begin(), all.end(), [](const Event& e) { return e.type == "early"; }));
    CHECK(std::is_sorted(all.begin(), all.end(),
                         [](const Event& x, const Event& y) { return x.id < y.id; }));
    CHECK(events.list(kUser, {}).size() == 1);
    journal.flush(std::chrono::seconds(30));
    EventLog again(journal, desk.clock);
    CHECK(again.list(kUser, {}).size() == 1);
    CHECK(again.list(kOperator, query).size() == 1'000);
}

TEST_CASE("a start finds a quiet tenant's event after any number of another's",
          "[unit][controller]") {
    Desk desk;
    Journal journal(desk.path, desk.clock, desk.log);
    journal.writeNow([](Database& database) {
        database.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) "
            "INSERT INTO events SELECT i, 0, 't', 'r', '', iif(i = 1, 'a', 'b'), '', '', '' "
            "FROM n");
    });
    EventLog events(journal, desk.clock);
    CHECK(events.list(kUser, {}).size() == 1);
    EventQuery query;
    query.limit = 2'000;
    CHECK(events.list(kOperator, query).size() == 1'000);
    CHECK(events.list(kOperator, query).back().id == 12'000);
}

TEST_CASE("ids of events do not go back if the disk refused the last ones", "[unit][controller]") {
    Desk desk;
    std::uint64_t last = 0;
    {
        Journal journal(desk.path, desk.clock, desk.log);
        EventLog events(journal, desk.clock);
        for (int i = 0; i < 5; ++i) events.publish(event("a"));
        last = events.list(kOperator, {}).back().id;
        journal.flush(std::chrono::seconds(30));
        journal.writeNow([&](Database& database) {
            database.execute("DELETE FROM events WHERE id > (SELECT min(id) FROM events)");
        });
    }
    desk.clock.advance(std::chrono::seconds(1));
    Journal journal(desk.path, desk.clock, desk.log);
    EventLog events(journal, desk.clock);
    events.publish(event("a"));
    CHECK(events.list(kOperator, {}).back().id > last);
}
