#include "api/serve/RevocationStore.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::program;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

constexpr std::chrono::hours kDay{24};

struct RevocationDesk : JournalDesk {
    /// Writes a full share of the tenant, which expires from tomorrow on, one each millisecond.
    void fill(const std::string& tenant) {
        const std::int64_t first_ms = toUnixMillis(clock.wall() + kDay);
        journal.writeNow([&](Database& database) {
            for (std::size_t i = 0; i < RevocationStore::kMost; ++i) {
                Statement(database,
                          "INSERT INTO revocations (session, tenant, expiry_ms) VALUES (?, ?, ?)")
                    .bind(tenant + std::to_string(i))
                    .bind(tenant)
                    .bind(first_ms + static_cast<std::int64_t>(i))
                    .run();
            }
        });
    }
    mcp::Revocation revocation(const std::string& session, const std::string& tenant) const {
        return {session, tenant, clock.wall() + 90 * kDay};
    }
};

}  // namespace

TEST_CASE("an ended session is on disk when its end is answered", "[unit][serve]") {
    RevocationDesk desk;
    RevocationStore store(desk.journal, desk.clock);
    CHECK_FALSE(store.contains("a"));
    store.add(desk.revocation("a", "t"));
    store.add(desk.revocation("a", "t"));  // two calls may end it at once
    CHECK(store.contains("a"));
    const RevocationStore again(desk.journal, desk.clock);
    CHECK(again.contains("a"));
    CHECK_FALSE(again.contains("b"));
}

TEST_CASE("a tenant that ends many sessions loses only its own, which expire first",
          "[unit][serve]") {
    RevocationDesk desk;
    desk.fill("many");
    RevocationStore full(desk.journal, desk.clock);
    full.add({"first", "few", desk.clock.wall() + kDay / 2});  // expires before all others
    CHECK(full.contains("many0"));
    full.add(desk.revocation("last", "many"));
    full.add(desk.revocation("last", "many"));  // replaces no other
    const RevocationStore again(desk.journal, desk.clock);
    for (const RevocationStore* each : {&std::as_const(full), &again}) {
        CHECK(each->contains("first"));
        CHECK_FALSE(each->contains("many0"));
        CHECK(each->contains("many1"));
        CHECK(each->contains("last"));
    }
}

TEST_CASE("expired sessions of any tenant leave with the next end", "[unit][serve]") {
    RevocationDesk desk;
    desk.fill("many");
    RevocationStore store(desk.journal, desk.clock);
    desk.clock.advance(2 * kDay);
    CHECK(store.contains("many0"));
    store.add(desk.revocation("a", "few"));
    desk.clock.advance(88 * kDay);  // still valid
    store.add(desk.revocation("b", "few"));
    const RevocationStore again(desk.journal, desk.clock);
    for (const RevocationStore* each : {&std::as_const(store), &again}) {
        CHECK_FALSE(each->contains("many0"));
        CHECK_FALSE(each->contains("many9999"));
        CHECK(each->contains("a"));
        CHECK(each->contains("b"));
    }
}
