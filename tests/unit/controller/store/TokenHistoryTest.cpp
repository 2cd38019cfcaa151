#include "controller/store/TokenHistory.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

TEST_CASE("the existence of a token is remembered across restarts", "[unit][controller]") {
    const TempDir dir;
    const std::string path = dir.file("had-tokens");
    {
        TokenHistory history(path, false);
        CHECK_FALSE(history.had());
        history.settle();
        CHECK_FALSE(history.had());
    }
    {
        // The database was lost, the answer was not.
        TokenHistory history(path, true);
        CHECK_FALSE(history.had());
        history.remember();
        CHECK(history.had());
    }
    TokenHistory history(path, false);
    CHECK(history.had());
    history.settle();  // does not take it back
    CHECK(TokenHistory(path, false).had());
    const auto mode = std::filesystem::status(path).permissions();
    CHECK((mode & std::filesystem::perms::others_read) == std::filesystem::perms::none);
}

TEST_CASE("a token history in doubt counts as a past token", "[unit][controller]") {
    const TempDir dir;
    CHECK(TokenHistory(dir.file("doubtful"), true).had());
    CHECK(TokenHistory(dir.file("doubtful"), false).had());  // the answer is recorded
    for (const std::string text : {"", "n", "garbage", "no"}) {
        INFO(text);
        writeText(dir.file("damaged"), text);
        CHECK(TokenHistory(dir.file("damaged"), false).had());
    }
    std::filesystem::create_directory(dir.file("folder"));
    CHECK(TokenHistory(dir.file("folder"), false).had());
}

TEST_CASE("a token history that cannot be written throws and stays as it was",
          "[unit][controller]") {
    const TempDir dir;
    TokenHistory history(dir.file("none/had-tokens"), false);
    CHECK_THROWS_AS(history.remember(), std::system_error);
    CHECK_FALSE(history.had());
    history.settle();  // no reason to refuse to start
    CHECK_FALSE(history.had());
}

TEST_CASE("revoked tokens are noted in place, as many as there are slots", "[unit][controller]") {
    const TempDir dir;
    const RevokedTokens revoked(dir.file("revoked"));
    CHECK(revoked.ids().empty());
    CHECK_FALSE(revoked.add("tk_early"));
    writeText(dir.file("revoked"), "tk_kept");  // too short: made anew, with the same content
    revoked.prepare();
    CHECK(revoked.ids() == std::set<std::string>{"tk_kept"});
    const auto size = std::filesystem::file_size(dir.file("revoked"));
    CHECK_FALSE(revoked.add("tk_" + std::string(100, 'x')));
    for (int i = 0; i < 255; ++i) CHECK(revoked.add("tk_" + std::to_string(i)));
    CHECK_FALSE(revoked.add("tk_one_too_many"));
    CHECK(revoked.ids().size() == 256);
    CHECK(std::filesystem::file_size(dir.file("revoked")) == size);
    revoked.prepare();
    CHECK(revoked.ids().size() == 256);
    revoked.clear();
    CHECK(revoked.ids().empty());
    CHECK(revoked.add("tk_next"));
}

TEST_CASE("where revoked tokens cannot be noted, nothing is left behind", "[unit][controller]") {
    const TempDir dir;
    const RevokedTokens revoked(dir.file("none/revoked"));
    revoked.prepare();
    CHECK_FALSE(revoked.add("tk_one"));
    CHECK(revoked.ids().empty());
    revoked.clear();
}
