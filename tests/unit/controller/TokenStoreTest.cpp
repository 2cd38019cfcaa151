#include "base/Ids.h"
#include "controller/TokenStore.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

struct Desk {
    TempDir dir;
    ManualClock clock;
    metrics::Log log{-1};
    Journal journal{dir.file("hearth.db"), clock, log};
};

const Principal kAdmin{"default", Role::Admin, ""};

}  // namespace

TEST_CASE("a token made is known, now and after a restart, and kept as a hash only",
          "[unit][controller]") {
    Desk desk;
    TokenStore store(desk.journal, {}, desk.clock);
    CHECK_FALSE(store.configured());
    CHECK_FALSE(store.authenticate(""));
    const auto [view, token] = store.create(kAdmin, "ci", "team-a", Role::Operator, {});
    CHECK(store.configured());
    const auto who = store.authenticate(token);
    REQUIRE(who);
    CHECK(who->tenant == "team-a");
    CHECK(who->role == Role::Operator);
    CHECK(who->token_id == view.id);
    const TokenStore again(desk.journal, {}, desk.clock);
    REQUIRE(again.authenticate(token));
    CHECK(again.authenticate(token)->role == Role::Operator);
    CHECK_FALSE(again.authenticate(token + "x"));
    CHECK_FALSE(again.authenticate(token.substr(0, token.size() - 1)));
    for (const char* suffix : {"", "-wal"}) {
        CHECK(readText(desk.dir.file(std::string("hearth.db") + suffix)).find(token) ==
              std::string::npos);
    }
}

TEST_CASE("an expired token is nobody", "[unit][controller]") {
    Desk desk;
    TokenStore store(desk.journal, {}, desk.clock);
    const auto [view, token] = store.create(kAdmin, "short", "t", Role::User, 60);
    CHECK(view.expires_at);
    desk.clock.advance(std::chrono::seconds(59));
    CHECK(store.authenticate(token));
    desk.clock.advance(std::chrono::seconds(1));
    CHECK_FALSE(store.authenticate(token));
    CHECK_FALSE(TokenStore(desk.journal, {}, desk.clock).authenticate(token));
}

TEST_CASE("a token removed is nobody at once and for good", "[unit][controller]") {
    Desk desk;
    TokenStore store(desk.journal, {}, desk.clock);
    const auto [view, token] = store.create(kAdmin, "x", "t", Role::User, {});
    store.remove(kAdmin, view.id);
    CHECK_FALSE(store.authenticate(token));
    CHECK_FALSE(TokenStore(desk.journal, {}, desk.clock).authenticate(token));
    CHECK(codeOf([&] { store.remove(kAdmin, view.id); }) == ErrorCode::NotFound);
}

TEST_CASE("configured tokens work and cannot be removed", "[unit][controller]") {
    Desk desk;
    TokenStore store(desk.journal, {{"ci", "team", Role::User, toHex(sha256("secret"))}},
                     desk.clock);
    CHECK(store.configured());
    REQUIRE(store.authenticate("secret"));
    CHECK(store.authenticate("secret")->tenant == "team");
    const auto views = store.list(kAdmin);
    REQUIRE(views.size() == 1);
    CHECK(views[0].source == "config");
    CHECK(codeOf([&] { store.remove(kAdmin, views[0].id); }) == ErrorCode::Conflict);
}

TEST_CASE("only an admin sees or changes tokens, and tenants have names", "[unit][controller]") {
    Desk desk;
    TokenStore store(desk.journal, {}, desk.clock);
    for (const Role role : {Role::User, Role::Operator}) {
        const Principal who{"t", role, ""};
        CHECK(codeOf([&] { store.list(who); }) == ErrorCode::Forbidden);
        CHECK(codeOf([&] { store.remove(who, "tk"); }) == ErrorCode::Forbidden);
        CHECK(codeOf([&] { store.create(who, "n", "t", Role::User, {}); }) == ErrorCode::Forbidden);
    }
    for (const std::string& tenant : {std::string(), std::string("A"), std::string(64, 'a')}) {
        CHECK(codeOf([&] { store.create(kAdmin, "n", tenant, Role::User, {}); }) ==
              ErrorCode::InvalidArgument);
    }
}

TEST_CASE("roles have names and back", "[unit][controller]") {
    for (const Role role : {Role::User, Role::Operator, Role::Admin}) {
        CHECK(parseRole(roleName(role)) == role);
    }
    CHECK_FALSE(parseRole("root"));
    CHECK_FALSE(parseRole("Admin"));
}
