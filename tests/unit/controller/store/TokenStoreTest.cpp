#include "base/Digest.h"
#include "controller/contract/RoleName.h"
#include "controller/store/TokenStore.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

struct TokenDesk : JournalDesk {
    TokenHistory history{dir.file("had-tokens"), false};

    /// The state after a start with a lost database: the history is read again.
    struct Lost {
        Journal journal;
        TokenHistory history;
    };
    Lost lost() { return {{dir.file("anew.db"), clock, log}, {dir.file("had-tokens"), true}}; }
};

const Principal kOwner{"default", Role::Admin, kOwnerOfState};

/// Makes each removal of a token need more room than the disk has, until the disk is thawed.
void fillDisk(Journal& journal) {
    journal.writeNow([](Database& database) {
        database.execute("CREATE TABLE more (bytes BLOB)");
        database.execute(
            "CREATE TRIGGER needs_room BEFORE DELETE ON tokens "
            "BEGIN INSERT INTO more VALUES (zeroblob(1000000)); END");
        database.execute("PRAGMA max_page_count = 1");
    });
}
void freeDisk(Journal& journal) {
    journal.writeNow(
        [](Database& database) { database.execute("PRAGMA max_page_count = 1000000"); });
}
std::int64_t storedTokens(Journal& journal) {
    std::int64_t count = 0;
    journal.read([&](Database& database) {
        Statement row(database, "SELECT count(*) FROM tokens");
        row.step();
        count = row.integer(0);
    });
    return count;
}

}  // namespace

TEST_CASE("a new token is known at once and after a restart, and kept as a hash only",
          "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    CHECK_FALSE(store.configured());
    CHECK_FALSE(store.authenticate(""));
    const auto [view, token] = store.create(kOwner, "ci", "team-a", Role::Operator, {});
    CHECK(store.configured());
    const auto who = store.authenticate(token);
    REQUIRE(who);
    CHECK(who->who.tenant == "team-a");
    CHECK(who->who.role == Role::Operator);
    CHECK(who->who.token_id == view.id);
    const TokenStore again(tokens.journal, tokens.history, {}, tokens.clock);
    REQUIRE(again.authenticate(token));
    CHECK(again.authenticate(token)->who.role == Role::Operator);
    CHECK_FALSE(again.authenticate(token + "x"));
    CHECK_FALSE(again.authenticate(token.substr(0, token.size() - 1)));
    for (const char* suffix : {"", "-wal"}) {
        CHECK(readText(tokens.dir.file(std::string("hearth.db") + suffix)).find(token) ==
              std::string::npos);
    }
}

TEST_CASE("an expired token is refused", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const auto [view, token] = store.create(kOwner, "short", "t", Role::User, 60);
    CHECK(view.expires_at);
    tokens.clock.advance(std::chrono::seconds(59));
    CHECK(store.authenticate(token));
    tokens.clock.advance(std::chrono::seconds(1));
    CHECK_FALSE(store.authenticate(token));
    CHECK_FALSE(TokenStore(tokens.journal, tokens.history, {}, tokens.clock).authenticate(token));
}

TEST_CASE("a removed token is refused at once and for good", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const auto [view, token] = store.create(kOwner, "x", "t", Role::User, {});
    store.remove(kOwner, view.id);
    CHECK_FALSE(store.authenticate(token));
    CHECK_FALSE(TokenStore(tokens.journal, tokens.history, {}, tokens.clock).authenticate(token));
    CHECK(codeOf([&] { store.remove(kOwner, view.id); }) == ErrorCode::NotFound);
}

TEST_CASE("configured tokens work and cannot be removed", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history,
                     {{"ci", "team", Role::User, toHex(sha256("secret"))}}, tokens.clock);
    CHECK(store.configured());
    REQUIRE(store.authenticate("secret"));
    CHECK(store.authenticate("secret")->who.tenant == "team");
    const auto views = store.list(kOwner);
    REQUIRE(views.size() == 1);
    CHECK(views[0].source == TokenSource::Config);
    CHECK(codeOf([&] { store.remove(kOwner, views[0].id); }) == ErrorCode::Conflict);
}

TEST_CASE("only an admin sees or changes tokens, and tenants have names", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    for (const Role role : {Role::User, Role::Operator}) {
        const Principal who{"t", role, ""};
        CHECK(codeOf([&] { store.list(who); }) == ErrorCode::Forbidden);
        CHECK(codeOf([&] { store.remove(who, "tk"); }) == ErrorCode::Forbidden);
        CHECK(codeOf([&] { store.create(who, "n", "t", Role::User, {}); }) == ErrorCode::Forbidden);
    }
    for (const std::string& tenant :
         {std::string(), std::string("a/b"), std::string("."), std::string(64, 'a')}) {
        CHECK(codeOf([&] { store.create(kOwner, "n", tenant, Role::User, {}); }) ==
              ErrorCode::InvalidArgument);
    }
}

TEST_CASE("role names convert to roles and back", "[unit][controller]") {
    for (const Role role : {Role::User, Role::Operator, Role::Admin}) {
        CHECK(kRoles.find(kRoles.of(role)) == role);
    }
    CHECK_FALSE(kRoles.find("root"));
    CHECK_FALSE(kRoles.find("Admin"));
}

TEST_CASE("an instance that never had a token is open, one that had and lost them is not",
          "[unit][controller]") {
    TokenDesk tokens;
    {
        TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
        CHECK(store.open());
        store.create(kOwner, "root", "default", Role::Admin, {});
        CHECK_FALSE(store.open());
    }
    TokenDesk::Lost lost = tokens.lost();
    CHECK_FALSE(TokenStore(lost.journal, lost.history, {}, tokens.clock).configured());
    CHECK_FALSE(TokenStore(lost.journal, lost.history, {}, tokens.clock).open());
    CHECK(TokenStore(lost.journal, lost.history, {}, tokens.clock, true).open());
}

TEST_CASE("the flag opens nothing while there is a token", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock, true);
    store.create(kOwner, "root", "default", Role::Admin, 60);
    CHECK_FALSE(store.open());
    tokens.clock.advance(std::chrono::seconds(61));
    CHECK_FALSE(store.open());  // not even after it has expired
}

TEST_CASE("tokens that leave the configuration leave a closed instance", "[unit][controller]") {
    TokenDesk tokens;
    {
        const TokenStore store(tokens.journal, tokens.history,
                               {{"ci", "team", Role::User, toHex(sha256("secret"))}}, tokens.clock);
    }
    TokenHistory again(tokens.dir.file("had-tokens"), false);
    CHECK_FALSE(TokenStore(tokens.journal, again, {}, tokens.clock).open());
    std::filesystem::remove(tokens.dir.file("had-tokens"));
    TokenHistory lost(tokens.dir.file("had-tokens"), false);
    CHECK_FALSE(
        TokenStore(tokens.journal, lost, {}, tokens.clock).open());  // the database knows of them
}

TEST_CASE("no token is made if its existence cannot be remembered", "[unit][controller]") {
    TokenDesk tokens;
    const std::string folder = tokens.dir.file("state");
    std::filesystem::create_directory(folder);
    TokenHistory history(folder + "/had-tokens", false);
    TokenStore store(tokens.journal, history, {}, tokens.clock);
    std::filesystem::remove_all(folder);
    CHECK_THROWS_AS(store.create(kOwner, "root", "default", Role::Admin, {}), std::system_error);
    CHECK_FALSE(store.configured());
    CHECK(TokenStore(tokens.journal, tokens.history, {}, tokens.clock).list(kOwner).empty());
}

TEST_CASE("the last token of an admin stays", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const std::string first = store.create(kOwner, "a", "t", Role::Admin, {}).first.id;
    const std::string user = store.create(kOwner, "u", "t", Role::User, {}).first.id;
    const std::string brief = store.create(kOwner, "b", "t", Role::Admin, 60).first.id;
    tokens.clock.advance(std::chrono::seconds(61));
    const Error refused = errorOf([&] { store.remove(kOwner, first); });
    CHECK(refused.code() == ErrorCode::Conflict);
    CHECK_FALSE(refused.hint().empty());
    store.remove(kOwner, brief);  // allowed, because it has expired
    store.remove(kOwner, user);
    const std::string second = store.create(kOwner, "c", "t", Role::Admin, {}).first.id;
    store.remove(kOwner, first);
    CHECK(codeOf([&] { store.remove(kOwner, second); }) == ErrorCode::Conflict);
}

TEST_CASE("a revocation that cannot be written fails and revokes nothing", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    store.create(kOwner, "root", "default", Role::Admin, {});
    const auto [view, token] = store.create(kOwner, "ci", "t", Role::User, {});
    tokens.journal.writeNow([](Database& database) {
        database.execute(
            "CREATE TRIGGER full BEFORE DELETE ON tokens BEGIN SELECT RAISE(ABORT, 'full'); END");
    });
    CHECK_THROWS(store.remove(kOwner, view.id));
    CHECK(store.authenticate(token));
    tokens.journal.writeNow([](Database& database) { database.execute("DROP TRIGGER full"); });
    store.remove(kOwner, view.id);
    CHECK_FALSE(store.authenticate(token));
}

TEST_CASE("a token is revoked on a full disk, for good", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    store.create(kOwner, "root", "default", Role::Admin, {});
    const auto [view, token] = store.create(kOwner, "stolen", "t", Role::User, {});
    const auto [other, other_token] = store.create(kOwner, "too", "t", Role::User, {});
    const RevokedTokens revoked(tokens.dir.file("revoked-tokens"));
    fillDisk(tokens.journal);
    store.remove(kOwner, view.id);
    CHECK_FALSE(store.authenticate(token));
    CHECK(storedTokens(tokens.journal) == 3);
    {
        TokenStore again(tokens.journal, tokens.history, {}, tokens.clock);
        CHECK_FALSE(again.authenticate(token));
        CHECK(again.list(kOwner).size() == 2);
        again.remove(kOwner, other.id);
    }
    CHECK(revoked.ids() == std::set<std::string>{view.id, other.id});
    freeDisk(tokens.journal);
    const TokenStore last(tokens.journal, tokens.history, {}, tokens.clock);
    CHECK_FALSE(last.authenticate(token));
    CHECK_FALSE(last.authenticate(other_token));
    CHECK(storedTokens(tokens.journal) == 1);
    CHECK(revoked.ids().empty());
}

TEST_CASE("a token revoked on a full disk leaves the database with the next change",
          "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    store.create(kOwner, "root", "default", Role::Admin, {});
    const auto made = store.create(kOwner, "stolen", "t", Role::User, {});
    fillDisk(tokens.journal);
    store.remove(kOwner, made.first.id);
    freeDisk(tokens.journal);
    store.create(kOwner, "next", "t", Role::User, {});
    CHECK(storedTokens(tokens.journal) == 2);
    CHECK(RevokedTokens(tokens.dir.file("revoked-tokens")).ids().empty());
}

TEST_CASE("a revocation on a full disk is refused if it cannot be noted in place",
          "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    store.create(kOwner, "root", "default", Role::Admin, {});
    const auto made = store.create(kOwner, "stolen", "t", Role::User, {});
    std::filesystem::remove(tokens.dir.file("revoked-tokens"));
    fillDisk(tokens.journal);
    try {
        store.remove(kOwner, made.first.id);
        FAIL("it was told to be revoked");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::DiskFull);
    }
    CHECK(store.authenticate(made.second));
}

TEST_CASE("a right ends with the removal of its token, and only that one", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const std::string root = store.create(kOwner, "root", "default", Role::Admin, {}).second;
    const auto [view, token] = store.create(kOwner, "ci", "t", Role::User, {});
    const AccessRight kept = store.authenticate(root)->right;
    const AccessRight ended = store.authenticate(token)->right;
    bool told = false;
    const std::stop_callback heard(ended.withdrawn, [&] { told = true; });
    CHECK(ended.holds(tokens.clock));
    CHECK(ended.until(tokens.clock) == TimePoint::max());
    store.remove(kOwner, view.id);
    CHECK(told);
    CHECK_FALSE(ended.holds(tokens.clock));
    CHECK(kept.holds(tokens.clock));
}

TEST_CASE("a right ends with the time of its token", "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const std::string token = store.create(kOwner, "short", "t", Role::User, 60).second;
    const AccessRight right = store.authenticate(token)->right;
    CHECK(right.until(tokens.clock) - tokens.clock.now() == std::chrono::seconds(60));
    tokens.clock.advance(std::chrono::seconds(59));
    CHECK(right.holds(tokens.clock));
    tokens.clock.advance(std::chrono::seconds(1));
    CHECK_FALSE(right.holds(tokens.clock));
    CHECK_FALSE(store.authenticate(token));
}

TEST_CASE("the right of callers without a token ends when a token is made", "[unit][controller]") {
    for (const bool flag : {false, true}) {
        INFO(flag);
        TokenDesk own;
        TokenStore store(own.journal, own.history, {}, own.clock, flag);
        const AccessRight before = store.anonymous()->right;
        CHECK(before.holds(own.clock));
        const std::string id = store.create(kOwner, "u", "t", Role::User, {}).first.id;
        CHECK_FALSE(before.holds(own.clock));
        CHECK_FALSE(store.anonymous());
        store.remove(kOwner, id);
        // Only the flag gives access again, with another right.
        const auto after = store.anonymous();
        REQUIRE(after.has_value() == flag);
        if (after) CHECK(after->right.holds(own.clock));
        CHECK_FALSE(before.holds(own.clock));
    }
}

TEST_CASE("a caller whose token has ended can neither make nor remove tokens",
          "[unit][controller]") {
    TokenDesk tokens;
    TokenStore store(tokens.journal, tokens.history, {}, tokens.clock);
    const Principal anybody = store.anonymous()->who;
    const auto [root, root_token] = store.create(anybody, "root", "ops", Role::Admin, {});
    CHECK(codeOf([&] { store.create(anybody, "mine", "ops", Role::Admin, {}); }) ==
          ErrorCode::Unauthenticated);
    const auto [stolen, stolen_token] = store.create(kOwner, "stolen", "ops", Role::Admin, {});
    const auto [brief, brief_token] = store.create(kOwner, "brief", "ops", Role::Admin, 60);
    const auto [user, user_token] = store.create(kOwner, "u", "t", Role::User, {});
    const Principal thief = store.authenticate(stolen_token)->who;
    const Principal late = store.authenticate(brief_token)->who;
    store.create(late, "in time", "t", Role::User, {});
    store.remove(store.authenticate(root_token)->who, stolen.id);
    tokens.clock.advance(std::chrono::minutes(2));
    for (const Principal& who : {thief, late, anybody}) {
        CHECK(codeOf([&] { store.create(who, "again", "ops", Role::Admin, {}); }) ==
              ErrorCode::Unauthenticated);
        CHECK(codeOf([&] { store.remove(who, user.id); }) == ErrorCode::Unauthenticated);
    }
    CHECK(store.authenticate(user_token));
    CHECK(store.list(kOwner).size() == 4);
}
