#include <catch2/catch.hpp>

#include "api/rest/model/Answers.h"

using namespace hearth;
using namespace hearth::rest;

TEST_CASE("a report on use is CSV that no spreadsheet takes for a formula", "[unit][rest]") {
    controller::UsageRow row;
    row.tenant = "=cmd|' /C calc'!A0";
    row.pool = "a,\"b\"";
    row.sums = {.claims = 2, .sandbox_ms = 1500, .egress_bytes = 7};
    CHECK(
        usageReportCsv({row}) ==
        "tenant,pool,claims,sandboxSeconds,cpuSeconds,gpuSeconds,memoryByteSeconds,egressBytes\r\n"
        "'=cmd|' /C calc'!A0,\"a,\"\"b\"\"\",2,1.5,0.0,0.0,0.0,7\r\n");
    CHECK(usageReportCsv({}).ends_with("egressBytes\r\n"));
}

TEST_CASE("a report says the whole hours that it covers", "[unit][rest]") {
    controller::UsageQuery query;
    query.since = fromUnixMillis(3'600'000 + 1'234);
    const Json report = usageReportJson(query, {}, fromUnixMillis(7'200'000));
    CHECK(report.at("since") == "1970-01-01T01:00:00.000Z");
    CHECK(report.at("until") == "1970-01-01T02:00:00.000Z");
    CHECK(report.at("by") == Json{"tenant"});
    CHECK(report.at("items").empty());
}
