#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/http/client/LineReader.h"
#include "tests/support/Support.h"

using namespace hearth;
using http::LineReader;

TEST_CASE("lines are whole whatever pieces they come in", "[unit][http]") {
    const std::string text = "one\n\ntwo {\r}\nhalf";
    for (std::size_t size = 1; size <= text.size(); ++size) {
        std::vector<std::string> lines;
        LineReader reader(64, [&](std::string_view line) {
            lines.emplace_back(line);
            return true;
        });
        for (std::size_t at = 0; at < text.size(); at += size) {
            CHECK(reader.feed(std::string_view(text).substr(at, size)));
        }
        CHECK(lines == std::vector<std::string>{"one", "", "two {\r}"});
        CHECK(reader.unfinished() == 4);
    }
}

TEST_CASE("a line of the longest length is read, a longer one is refused", "[unit][http]") {
    std::size_t seen = 0;
    LineReader reader(8, [&](std::string_view line) {
        seen = line.size();
        return true;
    });
    CHECK(reader.feed("12345"));
    CHECK(reader.feed("678\n"));
    CHECK(seen == 8);
    CHECK(test::codeOf([&] { reader.feed("123456789\n"); }) == ErrorCode::PayloadTooLarge);
    LineReader endless(8, [](std::string_view) { return true; });
    CHECK(endless.feed("12345678"));
    CHECK(test::codeOf([&] { endless.feed("9"); }) == ErrorCode::PayloadTooLarge);
}

TEST_CASE("no line comes after the reader of lines was told to stop", "[unit][http]") {
    int seen = 0;
    LineReader reader(64, [&](std::string_view) { return ++seen < 2; });
    CHECK_FALSE(reader.feed("1\n2\n3\n"));
    CHECK(seen == 2);
}
