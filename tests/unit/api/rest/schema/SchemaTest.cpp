#include <catch2/catch.hpp>

#include "api/rest/schema/Schema.h"

using namespace hearth;
using namespace hearth::rest;

TEST_CASE("null for an optional field is the same as leaving it out", "[unit][rest]") {
    const Schema schema =
        Schema::object()
            .required("name", Schema::string())
            .optional("count", Schema::integer(1, 9))
            .optional("choice", Schema::string().nullable())
            .optional("parts", Schema::array(Schema::object().optional("size", Schema::integer())))
            .optional("labels", Schema::map(kEnvName, Schema::string().nullable()));
    const Json given = Json::parse(R"({"name": "a", "count": null, "choice": null,
        "parts": [{"size": null}, {"size": 2}], "labels": {"A": null}, "unknown": null})");
    const Json kept = schema.withoutNulls(given);
    CHECK(kept == Json::parse(R"({"name": "a", "choice": null, "parts": [{}, {"size": 2}],
        "labels": {"A": null}, "unknown": null})"));
    // Null stays for a required field, which is missing without it, and for an unknown field.
    CHECK(schema.withoutNulls(Json::parse(R"({"name": null})")) ==
          Json::parse(R"({"name": null})"));
    CHECK(schema.withoutNulls(Json(nullptr)).is_null());
}

TEST_CASE("the bounds of bytes are shown as sizes, those of other numbers as they are",
          "[unit][rest]") {
    Faults faults;
    Schema::bytes(32LL << 20, 1LL << 40).check(Json(5), "/memory", faults);
    Schema::integer(8, 32'768).check(Json(7), "/pids", faults);
    REQUIRE(faults.invalid.size() == 2);
    CHECK(faults.invalid[0].reason == "must be between 32 MiB and 1 TiB");
    CHECK(faults.invalid[1].reason == "must be between 8 and 32768");
    CHECK(kEnvValue.expectation == "must be at most 32 KiB without NUL");
    CHECK(kArgument.expectation == "must be less than 128 KiB without NUL");
}
