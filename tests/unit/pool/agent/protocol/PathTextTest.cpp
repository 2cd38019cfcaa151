#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>

#include "pool/agent/protocol/PathText.h"

using namespace hearth::agent;

TEST_CASE("a name that is not UTF-8 is written as %XX, and every name has one text",
          "[unit][agent]") {
    CHECK(pathText("a/b c.txt") == "a/b c.txt");
    CHECK(pathText("\xD6\xD0") == "%D6%D0");
    CHECK(pathText("caf\xC3\xA9/\xD6\xD0.txt") == "caf\xC3\xA9/%D6%D0.txt");
    CHECK(pathText("100%") == "100%");
    CHECK(pathText("100%25") == "100%25");
    CHECK(pathText("a%20b") == "a%20b");
    CHECK(pathText("%\xFF") == "%25%FF");
    CHECK(pathText("%D6%D0") == "%25D6%25D0");
    CHECK(pathText("%d6") == "%25d6");
    CHECK(pathText("%C3%A9") == "%C3%A9");  // these bytes would be UTF-8: nobody writes them so
    CHECK(pathBytes("%D6%D0") == "\xD6\xD0");
    CHECK(pathBytes("%d6%d0") == "\xD6\xD0");
    CHECK(pathBytes("%25D6%25D0") == "%D6%D0");
    CHECK(pathBytes("100%25/%2F%00%C3%A9") == "100%25/%2F%00%C3%A9");
}

TEST_CASE("a text reads back as the bytes of its path", "[unit][agent]") {
    std::mt19937 random(11);
    constexpr std::string_view kPieces[] = {"%",    "25",       "D6", "d0", "\xD6",
                                            "\xD0", "\xC3\xA9", "a",  "/",  "."};
    std::set<std::string> paths;
    std::set<std::string> texts;
    for (int round = 0; round < 20'000; ++round) {
        std::string path;
        for (auto i = random() % 8; i > 0; --i) path += kPieces[random() % std::size(kPieces)];
        const std::string text = pathText(path);
        REQUIRE(pathBytes(text) == path);
        REQUIRE(hearth::tar::toUtf8(text) == text);
        REQUIRE(pathText(pathBytes(text)) == text);
        paths.insert(path);
        texts.insert(text);
    }
    CHECK(texts.size() == paths.size());
}

TEST_CASE("a client names a path by its text or by its bytes", "[unit][agent]") {
    CHECK(requestedPath("\xD6\xD0/a") == "%D6%D0/a");
    CHECK(requestedPath("%D6%D0/a") == "%D6%D0/a");
    CHECK(requestedPath("100%") == "100%");
}
