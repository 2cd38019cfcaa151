#include <nlohmann/json.hpp>

#include "base/Json.h"
#include "base/JsonText.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::optional<ErrorCode> refusal(std::string_view text, const JsonLimits& limits = {}) {
    return codeOf([&] { parseJson(text, limits); });
}

const auto kBad = ErrorCode::InvalidArgument;

}  // namespace

TEST_CASE("a document reads back as it was, its keys in order", "[unit][base]") {
    const std::string text =
        R"({"z":1,"a":[true,null,-3,1.5,"x\u00e9\n"],"m":{"b":{},"a":[]},"n":18446744073709551615})";
    CHECK(dumpJson(parseJson(text)) ==
          "{\"z\":1,\"a\":[true,null,-3,1.5,\"x\u00e9\\n\"],\"m\":{\"b\":{},\"a\":[]},"
          "\"n\":18446744073709551615}");
    CHECK(parseJson(" 7 ").get<int>() == 7);
}

TEST_CASE("a text that is not one JSON document is refused", "[unit][base]") {
    for (const char* text :
         {"", " ", "{", "[1,]", "{\"a\":1,}", "{'a':1}", "nul", "01", "1 2", "{} x", "[1]]",
          "// c\n1", "NaN", "+1", "\"\t\"", "\"\\ud800\"", "\xEF\xBB\xBF{", "1e999", "-1e999"}) {
        CAPTURE(text);
        CHECK(refusal(text) == kBad);
    }
    CHECK(refusal(std::string_view("1\0", 2)) == kBad);
    CHECK(refusal("\"\xff\"") == kBad);
    CHECK(refusal("\"\xc0\xaf\"") == kBad);
}

TEST_CASE("a key may stand once and holds no NUL", "[unit][base]") {
    CHECK(refusal(R"({"a":1,"a":2})") == kBad);
    CHECK(refusal(R"({"a":1,"\u0061":2})") == kBad);
    CHECK(refusal(R"({"x":{"a":1,"b":2,"a":3}})") == kBad);
    CHECK_FALSE(refusal(R"([{"a":1},{"a":2},{"b":{"a":1}}])"));
    CHECK(refusal(R"({"a\u0000b":1})") == kBad);
    CHECK(parseJson(R"(["a\u0000b"])")[0].get<std::string>().size() == 3);
}

TEST_CASE("each JSON limit holds exactly at its value", "[unit][base]") {
    JsonLimits limits;
    limits.bytes = 5;
    CHECK_FALSE(refusal("[1,2]", limits));
    CHECK(refusal("[1,22]", limits) == ErrorCode::PayloadTooLarge);
    CHECK_THROWS_WITH(parseJson("[1,22]", limits), "the JSON document is larger than 5 B");
    limits = {};
    limits.depth = 3;
    CHECK_FALSE(refusal("[[{}]]", limits));
    CHECK(refusal("[[{\"a\":[]}]]", limits) == kBad);
    limits = {};
    limits.values = 4;
    CHECK_FALSE(refusal("[1,2,3]", limits));
    CHECK(refusal("[1,2,3,4]", limits) == kBad);
    CHECK(refusal("[1,2,3,{}]", limits) == kBad);
    limits = {};
    limits.members = 2;
    CHECK_FALSE(refusal(R"([{"a":1,"b":2},{"c":3}])", limits));
    CHECK(refusal(R"({"a":1,"b":2,"c":3})", limits) == kBad);
}

TEST_CASE("a million open brackets are refused without a crash", "[unit][base]") {
    CHECK(refusal(std::string(1'000'000, '[')) == kBad);
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    CHECK(refusal(objects) == kBad);
}

TEST_CASE("UTF-8 is recognized, and invalid bytes are replaced", "[unit][base]") {
    for (const char* good : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x94\xA5",
                             "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
        CHECK(isUtf8(good));
        CHECK(toUtf8(good) == good);
    }
    for (const char* bad : {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                            "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
                            "\xE2\x82", "a\xE2\x28\xA1"}) {
        CHECK_FALSE(isUtf8(bad));
        CHECK(isUtf8(toUtf8(bad)));
    }
    CHECK(toUtf8("a\xFF"
                 "b") ==
          "a\xEF\xBF\xBD"
          "b");
    CHECK(isUtf8(dumpJson(Json(std::string("\xff")))));
}

TEST_CASE("text is escaped for JSON as the whole document would be", "[unit][base]") {
    std::string all;
    for (int first = 0; first < 256; ++first) {
        all.push_back(static_cast<char>(first));
        for (const int second : {0, 0x1F, 0x22, 0x41, 0x5C, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xFF}) {
            all.push_back(static_cast<char>(second));
            all.push_back(static_cast<char>(first));
        }
    }
    all.append("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5 \xF0\x9F\x94");
    for (std::size_t from = 0; from < all.size(); from += 7) {
        std::string text = "\"";
        appendJsonText(text, std::string_view(all).substr(from));
        REQUIRE(text + "\"" == dumpJson(Json(toUtf8(std::string_view(all).substr(from)))));
    }
}

TEST_CASE("a lenient reader leaves out values beyond its limits and keeps the rest",
          "[unit][base]") {
    const JsonLimits lenient{.depth = 3, .lenient = true};
    CHECK(parseJson(R"({"a":{"b":[1,[2,[3]],{"c":4},5]},"d":6})", lenient) ==
          Json{{"a", {{"b", {1, nullptr, nullptr, 5}}}}, {"d", 6}});
    CHECK(parseJson(R"([{"a\u0000":{"b":[1]},"c":2,"\u0000":3},4])", lenient) ==
          Json::array({{{"c", 2}}, 4}));
    CHECK(refusal(R"({"a":[[[[1]})", lenient) == kBad);
    CHECK(refusal(R"({"a":1,"a":2})", lenient) == kBad);
    CHECK(refusal(R"([[[[1,2],[3]]]])", {.values = 5, .lenient = true}) == kBad);
}

TEST_CASE("an object with many members keeps their order, and none stands twice", "[unit][base]") {
    std::string text = "{";
    for (int n = 0; n < 40; ++n) {
        text += "\"k" + std::to_string(n) + R"(": [{"a": 1, "b": [[], {}]}, "x"],)";
    }
    const std::string more = R"("last": {"k0": 1}})";
    const Json value = parseJson(text + more);
    REQUIRE(value.size() == 41);
    int n = 0;
    for (const auto& [key, member] : value.items()) {
        if (n == 40) break;
        CHECK(key == "k" + std::to_string(n++));
        CHECK(member == Json::parse(R"([{"a": 1, "b": [[], {}]}, "x"])"));
    }
    CHECK(value.back() == Json({{"k0", 1}}));
    for (const char* again : {"k0", "k15", "k16", "k39"}) {
        CHECK_THROWS_AS(parseJson(text + "\"" + again + "\": 1}"), Error);
    }
    CHECK_THROWS_AS(parseJson(R"({"a": {"b": 1, "b": 2}})"), Error);
}
