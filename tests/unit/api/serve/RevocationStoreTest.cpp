#include "api/serve/RevocationStore.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::program;
using namespace hearth::controller::test;
using namespace hearth::test;

TEST_CASE("an ended session is on disk when its end is answered", "[unit][serve]") {
    JournalDesk desk;
    RevocationStore store(desk.journal);
    CHECK_FALSE(store.contains("a"));
    store.add("a");
    store.add("a");  // two calls may end it at once
    CHECK(store.contains("a"));
    const RevocationStore again(desk.journal);
    CHECK(again.contains("a"));
    CHECK_FALSE(again.contains("b"));
}

TEST_CASE("the memory of ended sessions is bounded, also on disk", "[unit][serve]") {
    JournalDesk desk;
    desk.journal.writeNow([](Database& database) {
        for (std::size_t i = 0; i < RevocationStore::kMost; ++i) {
            Statement(database, "INSERT INTO revocations (session) VALUES (?)")
                .bind(std::to_string(i))
                .run();
        }
    });
    RevocationStore full(desk.journal);
    CHECK(full.contains("0"));
    full.add("last");
    const RevocationStore again(desk.journal);
    for (const RevocationStore* each : {&std::as_const(full), &again}) {
        CHECK_FALSE(each->contains("0"));
        CHECK(each->contains("1"));
        CHECK(each->contains("last"));
    }
}
