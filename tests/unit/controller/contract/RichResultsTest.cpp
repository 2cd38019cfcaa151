#include <nlohmann/json.hpp>

#include "base/Json.h"
#include "controller/contract/ResultForms.h"
#include "controller/contract/RichResults.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

/// A result with a text and one form beside it, as raw JSON.
Json beside(const std::string& type, const std::string& raw, std::size_t most = kMostResultValues) {
    const ResultPtr result = readResult(
        R"({"main":true,"mime":{"text/plain":"text",")" + type + "\":" + raw + "}}", 7, most);
    REQUIRE(result);
    CHECK(result->main);
    CHECK(result->behind == 7);
    const Json document = documentOf(*result);
    CHECK(document.at("mime").at("text/plain") == "text");
    // The journal gives it back as it was.
    const ResultPtr again = keptResult(result->document, 7);
    REQUIRE(again);
    CHECK(documentOf(*again) == document);
    return document;
}

/// The reason why that form is left out; empty if it is there.
std::string reason(const std::string& type, const std::string& raw) {
    const Json document = beside(type, raw);
    const auto left_out = document.find("leftOut");
    CHECK((left_out == document.end()) == document.at("mime").contains(type));
    if (left_out == document.end()) return {};
    REQUIRE(left_out->size() == 1);
    CHECK(left_out->at(0).at("type") == type);
    return textAt(left_out->at(0), "reason");
}

std::string jsonReason(const std::string& raw) {
    return reason("application/json", raw);
}

std::string repeated(std::size_t count, const std::string& each) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += each;
    return text;
}

}  // namespace

TEST_CASE("an invalid form of a result is left out with its reason, and the others stay",
          "[unit][controller]") {
    CHECK(jsonReason("18446744073709551615").empty());
    CHECK(jsonReason("[18446744073709551616]") == "an integer has more than 64 bits");
    CHECK(jsonReason("[-9223372036854775809]") == "an integer has more than 64 bits");
    CHECK(jsonReason("1" + std::string(309, '0')) == "an integer has more than 64 bits");
    CHECK(jsonReason("[1.5e300]").empty());
    CHECK(jsonReason("[1e999]").starts_with("a number is too large"));
    CHECK(jsonReason(R"({"a\u0000b":1})") == "a key holds a NUL character");
    CHECK(jsonReason(R"({"1":1,"1":2})") == "the key \"1\" is given twice");
    for (const char* raw : {"[NaN]", "{\"a\":Infinity}", "-Infinity"}) {
        CHECK(jsonReason(raw) == "NaN and infinity are no JSON numbers");
    }
    CHECK(jsonReason("[1,]").starts_with("not valid JSON"));
    CHECK(reason("application/vnd.plotly.v1+json", "{\"y\":[NaN]}") ==
          "NaN and infinity are no JSON numbers");
    CHECK(reason("text/x-evil", "\"a\"") == "results have no such type");
    CHECK(reason("text/html", "1") == "its value is no text");
    CHECK(reason("image/png", "\"not base64!\"") == "it is not base64");
}

TEST_CASE("values as wide and deep as programs make them are shown", "[unit][controller]") {
    std::string members;
    for (int i = 0; i < 5'000; ++i) {
        members += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + std::to_string(i);
    }
    const Json wide = beside("application/json", "{" + members + "}");
    CHECK(wide.at("mime").at("application/json").size() == 5'000);
    CHECK(jsonReason(repeated(40, "[") + repeated(40, "]")).empty());
    CHECK(jsonReason(repeated(49, "[") + repeated(49, "]")) == "the document is nested too deeply");
    CHECK(jsonReason("[0" + repeated(99'998, ",0") + "]").empty());
    CHECK(jsonReason("[0" + repeated(100'000, ",0") + "]") == "the document has too many values");
    const Json narrow = beside("application/json", "[1,2]", 2);
    CHECK_FALSE(narrow.at("mime").contains("application/json"));
    CHECK(narrow.at("leftOut").size() == 1);
}

TEST_CASE("a text that UTF-8 cannot hold is written with escapes", "[unit][controller]") {
    const auto html = [](const std::string& raw) {
        return textAt(beside("text/html", raw).at("mime"), "text/html");
    };
    CHECK(html(R"("a\udcffb")") == R"(a\udcffb)");
    CHECK(html(R"("\ud83d\ude00 \ud83d \ude00")") == "\xF0\x9F\x98\x80 \\ud83d \\ude00");
    CHECK(html(R"("\\udcff")") == R"(\udcff)");
    CHECK(html("\"a\xFF\"") == "a\xEF\xBF\xBD");
    const Json names = beside("application/json", R"([{"\udcd6\udcd0":"\udcd6"}])");
    CHECK(names.at("mime").at("application/json").at(0).at(R"(\udcd6\udcd0)") == R"(\udcd6)");
}

TEST_CASE("base64 may come in lines", "[unit][controller]") {
    const Json lines = beside("image/png", R"("aGVs\nbG8=\r\n")");
    CHECK(lines.at("mime").at("image/png") == "aGVsbG8=");
    CHECK_FALSE(lines.contains("leftOut"));
}

TEST_CASE("the plain text of a result is kept before forms beyond the limit",
          "[unit][controller]") {
    std::string forms;
    for (int i = 0; i < 20; ++i) {
        forms += "\"application/vnd.n" + std::to_string(i) + "+json\":1,";
    }
    const ResultPtr result =
        readResult(R"({"main":false,"mime":{)" + forms + R"("text/plain":"here"}})", 0);
    REQUIRE(result);
    CHECK(documentOf(*result).at("mime").at("text/plain") == "here");
    CHECK(documentOf(*result).at("mime").size() == 16);
    CHECK(documentOf(*result).at("leftOut").size() == 5);
}

TEST_CASE("an interpreter reports the forms that it leaves out", "[unit][controller]") {
    const ResultPtr result = readResult(
        R"({"main":false,"mime":{},"leftOut":[{"type":"image/png","reason":"of 9 MB"},1]})", 0);
    REQUIRE(result);
    const Json left_out{{{"type", "image/png"}, {"reason", "of 9 MB"}}};
    CHECK(documentOf(*result).at("leftOut") == left_out);
}

TEST_CASE("an invalid document is no result", "[unit][controller]") {
    const auto good = [](const std::string& text) { return readResult(text, 0) != nullptr; };
    CHECK(good(R"( {"main": true , "mime": {"text/plain": "1"} } )"));
    CHECK(good(R"({"main":true,"mime":{"application/vnd.vegalite.v5+json":{"a":1}}})"));
    CHECK(good(R"({"main":true,"mime":{"application/vnd.vegalite.v6.json":{"a":1}}})"));
    for (const char* text :
         {R"({"mime":{"text/plain":"1"}})", R"({"main":true,"mime":{}})", R"({"main":true})",
          R"({"main":1,"mime":{"text/plain":"1"}})", R"({"main":true,"mime":["text/plain"]})",
          R"({"main":true,"mime":{"text/plain":"1"},"more":1})", "[1]", "", "{",
          R"({"main":true,"mime":{"text/plain":"1"}}x)", R"({"main":true,"mime":{"text/plain":})",
          R"({"main":true,"mime":{text:"1"}})", R"({"main":true,"mime":{"text/plain":"1)"}) {
        CAPTURE(text);
        CHECK_FALSE(good(text));
    }
    std::string many = "\"a\":1";
    for (int i = 0; i < 100; ++i) many += ",\"a" + std::to_string(i) + "\":1";
    CHECK_FALSE(good(R"({"main":true,"mime":{)" + many + "}}"));
    for (const char* type :
         {"text/plain; x", "application/vnd.+json", "application/vnd.a b+json"}) {
        CHECK_FALSE(reason(type, "1").empty());
    }
}
