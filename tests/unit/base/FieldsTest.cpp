#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Fields.h"

using namespace hearth;

namespace {

enum class Colour { Red, Blue };
constexpr Texts<Colour, 2> kColours{{"red", "blue"}};

/// Returns the faults of `document`, one place and reason per line.
std::string wrongIn(const std::string& document, Fields::Absent absent = Fields::Absent::Fine) {
    std::string said;
    const Json json = parseJson(document);
    const Fields::Wrong wrong = [&](const FieldError& e) {
        said += e.pointer + " " + e.reason + "\n";
    };
    Fields fields(json, "/top", wrong, absent);
    fields.text("name", 4);
    fields.number("count", 1, 9);
    fields.integer("shift", -2, 2);
    fields.flag("on");
    fields.choice("colour", kColours);
    Fields inner = fields.object("inner");
    inner.items("list", 2, [&](const Json& item, const std::string& at) {
        if (!item.is_string()) fields.tell({at, "must be a string"});
    });
    inner.finish();
    fields.finish();
    return said;
}

}  // namespace

TEST_CASE("valid fields are read, and absent ones are empty", "[unit][base]") {
    const Json json = parseJson(R"({"name":"a","count":3,"shift":-1,"on":true,"colour":"blue"})");
    const Fields::Wrong wrong = [](const FieldError& e) { throw std::runtime_error(e.pointer); };
    Fields fields(json, "", wrong, Fields::Absent::Fine);
    CHECK(fields.text("name") == "a");
    CHECK(fields.number("count", 0, 9) == 3);
    CHECK(fields.integer("shift", -9, 9) == -1);
    CHECK(fields.flag("on") == true);
    CHECK((fields.choice("colour", kColours) == Colour::Blue));
    fields.finish();
    CHECK_FALSE(fields.text("other"));
    CHECK(fields.object("inner").find("x") == nullptr);
}

TEST_CASE("each wrong field is reported with its pointer", "[unit][base]") {
    CHECK(wrongIn("{}").empty());
    CHECK(wrongIn(R"({"name":null,"inner":null})").empty());
    CHECK(wrongIn(R"({"name":"abcde","count":0,"shift":3,"on":1,"colour":"green",
                      "inner":{"list":[1,"a"],"x":1},"y":1})") ==
          "/top/name must be at most 4 bytes\n"
          "/top/count must be a whole number from 1 to 9\n"
          "/top/shift must be a whole number from -2 to 2\n"
          "/top/on must be true or false\n"
          "/top/colour must be one of red, blue\n"
          "/top/inner/list/0 must be a string\n"
          "/top/inner/x unknown field; known here: list\n"
          "/top/y unknown field; known here: name, count, shift, on, colour, inner\n");
    CHECK(wrongIn(R"({"count":-1,"shift":18446744073709551615,"inner":{"list":[1,2,3]}})") ==
          "/top/count must be a whole number from 1 to 9\n"
          "/top/shift must be a whole number from -2 to 2\n"
          "/top/inner/list must be a list of at most 2\n");
    CHECK(wrongIn("[]") == "/top must be an object\n");
}

TEST_CASE("an absent field is wrong where all are required", "[unit][base]") {
    CHECK(wrongIn(R"({"name":"a","count":1,"shift":0,"on":false,"inner":{"list":[]}})",
                  Fields::Absent::Wrong) == "/top/colour is missing\n");
    CHECK(wrongIn("null", Fields::Absent::Wrong).starts_with("/top must be an object\n"));
}
