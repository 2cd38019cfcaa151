#include "base/Error.h"
#include "controller/executions/LanguageChoice.h"
#include "pool/spec/LanguageName.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

using Names = std::vector<std::string>;

TEST_CASE("a language is found by its common names and reported by its own", "[unit][controller]") {
    const Names known{"python", "javascript", "node", "bash", "sh", "typescript", "cpp"};
    for (const auto& [asked, own] : std::map<std::string, std::string>{{"py", "python"},
                                                                       {"python3", "python"},
                                                                       {"js", "javascript"},
                                                                       {"node", "javascript"},
                                                                       {"nodejs", "javascript"},
                                                                       {"shell", "bash"},
                                                                       {"sh", "sh"},
                                                                       {"ts", "typescript"},
                                                                       {"c++", "cpp"},
                                                                       {"", "python"}}) {
        INFO(asked);
        CHECK(chooseLanguage(asked, known) == own);
    }
    CHECK(codeOf([&] { chooseLanguage("golang", known); }) == ErrorCode::InvalidArgument);
    CHECK(codeOf([&] { chooseLanguage("py", {"sh"}); }) == ErrorCode::InvalidArgument);
}

TEST_CASE("an image's own names count before common ones", "[unit][controller]") {
    CHECK(chooseLanguage("python3", {"python", "python3"}) == "python3");  // python may be 2
    CHECK(chooseLanguage("c++", {"c++", "python"}) == "c++");
    CHECK(chooseLanguage("js", {"node"}) == "node");
    CHECK(chooseLanguage("javascript", {"node"}) == "node");
    CHECK(chooseLanguage("shell", {"sh"}) == "sh");
    CHECK(chooseLanguage("shell", {"shell", "bash"}) == "shell");
    CHECK(chooseLanguage("sh", {"bash"}) == "bash");
    // Code for bash does not run in every sh.
    CHECK(codeOf([] { chooseLanguage("bash", {"sh"}); }) == ErrorCode::InvalidArgument);
}

TEST_CASE("each common name has the form of a language's name", "[unit][controller]") {
    for (const pool::LanguageAlias& each : pool::kLanguageAliases) {
        CHECK(pool::isLanguageName(each.alias));
        CHECK(pool::isLanguageName(each.language));
    }
}
