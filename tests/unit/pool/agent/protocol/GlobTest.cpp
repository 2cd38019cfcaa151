#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "pool/agent/protocol/Glob.h"

using hearth::agent::anyGlobMatches;

namespace {

bool matches(const std::string& pattern, const std::string& path) {
    return anyGlobMatches(std::vector<std::string>{pattern}, path);
}

}  // namespace

TEST_CASE("two stars match at every depth, one within a component", "[unit][agent]") {
    CHECK(matches("**", "a"));
    CHECK(matches("**", "a/b/c.txt"));
    CHECK(matches("out/**", "out/a/b"));
    CHECK_FALSE(matches("out/**", "other/a"));
    CHECK(matches("a/**/z", "a/z"));
    CHECK(matches("a/**/z", "a/b/c/z"));
    CHECK(matches("a/*/z", "a/b/z"));
    CHECK_FALSE(matches("a/*/z", "a/b/c/z"));
    CHECK(matches("./a/?.p*g", "a/b.png"));
    CHECK_FALSE(matches("a/?", "a/bc"));
}

TEST_CASE("a pattern without a slash is looked for everywhere", "[unit][agent]") {
    CHECK(matches("*.png", "plot.png"));
    CHECK(matches("*.png", "out/deep/plot.png"));
    CHECK_FALSE(matches("*.png", "plot.png.txt"));
    CHECK(matches("report.txt", "out/report.txt"));
}

TEST_CASE("hidden names and caches match only if the pattern spells them", "[unit][agent]") {
    CHECK_FALSE(matches("**", ".env"));
    CHECK_FALSE(matches("**", ".git/config"));
    CHECK_FALSE(matches("**", "a/__pycache__/x.pyc"));
    CHECK_FALSE(matches("**", "node_modules/x/index.js"));
    CHECK_FALSE(matches("*", ".env"));
    CHECK(matches(".env", ".env"));
    CHECK(matches(".git/**", ".git/config"));
    CHECK(matches(".*", "a/.x"));
}

TEST_CASE("a pattern designed to be slow is matched fast", "[unit][agent]") {
    std::string deep;
    for (int i = 0; i < 60; ++i) deep += "a/";
    CHECK_FALSE(matches("**/a/**/a/**/a/**/a/**/b", deep + "c"));
    CHECK_FALSE(matches(std::string(200, '*') + "b", std::string(255, 'a')));
}
