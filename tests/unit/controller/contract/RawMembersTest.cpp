#include <nlohmann/json.hpp>

#include "controller/contract/RawMembers.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

std::string outline(std::string_view object, std::size_t most = 8) {
    const auto members = rawMembers(object, most);
    if (!members) return "none";
    std::string text;
    for (const RawMember& each : *members) text += each.key + "=" + std::string(each.value) + ";";
    return text;
}

}  // namespace

TEST_CASE("an object is split into its members, whatever their values are", "[unit][controller]") {
    CHECK(outline("{}").empty());
    CHECK(outline(" { \"a\" : 1 , \"b\":[1,{\"c\":\"]}\"}] } ") == "a=1;b=[1,{\"c\":\"]}\"}];");
    CHECK(outline(R"({"a\"b":"\"}","c":NaN})") == "a\"b=\"\\\"}\";c=NaN;");
    CHECK(outline(R"({"a":[1,2],"b":nonsense})") == "a=[1,2];b=nonsense;");
    CHECK(outline(R"({"a":1,"b":2})", 1) == "none");
    for (const char* text :
         {"", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1}x", "{a:1}", "{\"a\":1,}",
          "{\"a\" 1}", "{\"a\":\"", "{\"a\":\"\\", "{\"\\x\":1}", "{\"a\":1 \"b\":2}", "{1:2}"}) {
        CAPTURE(text);
        CHECK(outline(text) == "none");
    }
}

TEST_CASE("nesting costs a splitter nothing", "[unit][controller]") {
    const std::string deep(1'000'000, '[');
    CHECK(outline("{\"a\":" + deep + "}") == "none");
    const std::string closed = "[" + std::string(500'000, '{') + std::string(500'000, '}') + "]";
    CHECK(outline("{\"a\":" + closed + "}") == "a=" + closed + ";");
    CHECK_FALSE(foreignValue(deep, {}).json);
}
