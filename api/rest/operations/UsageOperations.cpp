#include <sstream>

#include "api/http/RequestFacts.h"
#include "api/rest/model/Answers.h"
#include "api/rest/operations/Tables.h"
#include "base/Units.h"
#include "controller/schedule/ParseTime.h"

namespace hearth::rest {
namespace {

using controller::Services;

/// Parses a time of RFC 3339, or a duration before now.
WallTime timeOf(const std::string& text, const char* parameter, WallTime now) {
    if (const auto ago = parseDuration(text)) return now - *ago;
    if (const auto at = controller::parseTime(text)) return *at;
    throw Error(ErrorCode::InvalidArgument, std::string(parameter) + " is not a time")
        .field(
            std::string("/") + parameter,
            "must be as 2026-11-27T10:00:00Z, before the year 2250, or a duration before now, as "
            "7d or 36h");
}

controller::UsageQuery queryOf(const Call& call, WallTime now) {
    controller::UsageQuery query;
    query.by_tenant = query.by_pool = false;
    std::istringstream words(call.queryOr<std::string>("by", "tenant"));
    for (std::string word; std::getline(words, word, ',');) {
        if (word != "tenant" && word != "pool") {
            throw Error(ErrorCode::InvalidArgument, "by does not name a way to group usage")
                .field("/by", "must be tenant, pool, or tenant,pool");
        }
        (word == "tenant" ? query.by_tenant : query.by_pool) = true;
    }
    query.since = timeOf(call.queryOr<std::string>("since", "24h"), "since", now);
    if (call.query.contains("until")) {
        query.until = timeOf(call.queryOr<std::string>("until", ""), "until", now);
        if (*query.until < query.since) {
            throw Error(ErrorCode::InvalidArgument, "until is before since")
                .field("/until", "must not be before since");
        }
    }
    return query;
}

bool wantsCsv(const api::Request& request) {
    for (const Poco::Net::MediaType& type : api::acceptedTypes(request)) {
        if (type.matches("text", "csv")) return true;
        if (type.matches("application", "json")) return false;
    }
    return false;
}

}  // namespace

Operations usageOperations(const Services& services) {
    Operation report("GET", "/v1/usage", "getUsage", "How much each tenant used", "System");
    report.description =
        "Sums of whole hours (UTC), kept for 92 days; current use is included after 25 seconds. "
        "Users see their own tenant's use, operators everybody's. With `Accept: text/csv` as CSV. "
        "Processor time that a workspace used between the last measurement and a crash of the "
        "server is missing.";
    report.parameters = {
        queryParameter("by", Schema::string().sizes(1, 32).fallback("tenant"),
                       "A row for each: tenant, pool, or tenant,pool"),
        queryParameter("since", Schema::string().sizes(1, 64).fallback("24h"),
                       "From the hour of this time on: RFC 3339, or a duration before now, as 7d"),
        queryParameter("until", Schema::string().sizes(1, 64),
                       "Up to the hour of this time; default: now")};
    report.answers = {{200, "A row for each", usageReportSchema()},
                      {200, "The same, a line for each", {}, "text/csv"}};
    report.handle = [&services](Call& call) {
        const WallTime now = services.clock.wall();
        const controller::UsageQuery query = queryOf(call, now);
        const std::vector<controller::UsageRow> rows = services.usage.report(call.who, query);
        if (!wantsCsv(call.request)) return jsonResponse(usageReportJson(query, rows, now));
        api::Response response;
        response.headers.add("Content-Type", "text/csv; charset=utf-8");
        response.body = usageReportCsv(rows);
        return response;
    };
    Operations all;
    all.push_back(std::move(report));
    return all;
}

}  // namespace hearth::rest
