#include <catch2/catch.hpp>

#include "api/mcp/tools/Arguments.h"

using namespace hearth;
using namespace hearth::mcp;

TEST_CASE("null for an argument that is not needed is the same as leaving it out", "[unit][mcp]") {
    const Json schema = Json::parse(R"({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"}, "b": {"type": "integer"},
        "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "d": {"type": "array", "items": {"type": "object", "properties": {"e": {"type": "string"}}}}
    }})");
    const Json given = Json::parse(
        R"({"a": "x", "b": null, "c": null, "d": [{"e": null}, {"e": "y"}], "other": null})");
    const Json kept = withoutNulls(schema, given);
    CHECK(kept == Json::parse(R"({"a": "x", "c": null, "d": [{}, {"e": "y"}], "other": null})"));
    CHECK(argumentProblems(schema, withoutNulls(schema, {{"a", nullptr}})).size() == 1);
}
