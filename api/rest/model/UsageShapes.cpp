#include "api/rest/model/UsageShapes.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/Units.h"

namespace hearth::rest {
namespace {

using controller::UsageRow;
using controller::UsageSums;

constexpr double kKiB = 1024;

double thousandths(std::uint64_t value) {
    return static_cast<double>(value) / 1e3;
}

Json rowJson(const UsageRow& row) {
    const UsageSums& sums = row.sums;
    return {{"tenant", row.tenant.empty() ? Json(nullptr) : Json(row.tenant)},
            {"pool", row.pool.empty() ? Json(nullptr) : Json(row.pool)},
            {"claims", sums.claims},
            {"sandboxSeconds", thousandths(sums.sandbox_ms)},
            {"cpuSeconds", static_cast<double>(sums.cpu_us) / 1e6},
            {"gpuSeconds", thousandths(sums.gpu_ms)},
            {"memoryByteSeconds", static_cast<double>(sums.memory_kib_secs) * kKiB},
            {"egressBytes", sums.egress_bytes}};
}

std::string csvCell(const Json& value) {
    if (value.is_null()) return "";
    if (!value.is_string()) return value.dump();
    std::string text = value.get<std::string>();
    if (!text.empty() &&
        std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) {
        text.insert(0, "'");
    }
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted + "\"";
}

}  // namespace

Schema usageReportSchema() {
    const Schema row =
        Schema::object()
            .required("tenant", Schema::string().nullable().describe("null: all, if not by tenant"))
            .required("pool", Schema::string().nullable().describe("null: all, if not by pool"))
            .required("claims", Schema::integer())
            .required("sandboxSeconds", Schema::number().describe("From the claim to the end"))
            .required("cpuSeconds", Schema::number())
            .required("gpuSeconds", Schema::number().describe("For each device"))
            .required("memoryByteSeconds",
                      Schema::number().describe("Memory in use times its time"))
            .required("egressBytes", Schema::integer().describe("Both ways"))
            .named("UsageRow");
    return Schema::object()
        .required("since", Schema::string(kDateTime).describe("The hour that it begins with"))
        .required("until", Schema::string(kDateTime))
        .required("by", Schema::array(Schema::oneOf({"tenant", "pool"})))
        .required("items", Schema::array(row))
        .example({{"since", "2026-11-20T10:00:00.000Z"},
                  {"until", "2026-11-27T10:12:00.000Z"},
                  {"by", {"tenant"}},
                  {"items",
                   {{{"tenant", "default"},
                     {"pool", nullptr},
                     {"claims", 12},
                     {"sandboxSeconds", 340.5},
                     {"cpuSeconds", 12.1},
                     {"gpuSeconds", 0.0},
                     {"memoryByteSeconds", 1.2e12},
                     {"egressBytes", 0}}}}})
        .named("UsageReport");
}

Json usageReportJson(const controller::UsageQuery& query, const std::vector<UsageRow>& rows,
                     WallTime now) {
    constexpr std::int64_t kHourMs = 3600LL * 1000;
    Json by = Json::array();
    if (query.by_tenant) by.push_back("tenant");
    if (query.by_pool) by.push_back("pool");
    Json items = Json::array();
    for (const UsageRow& row : rows) items.push_back(rowJson(row));
    const std::int64_t begin = toUnixMillis(query.since) / kHourMs * kHourMs;
    return {{"since", formatUnixMillis(begin)},
            {"until", formatRfc3339(query.until.value_or(now))},
            {"by", std::move(by)},
            {"items", std::move(items)}};
}

std::string usageReportCsv(const std::vector<UsageRow>& rows) {
    std::string text =
        "tenant,pool,claims,sandboxSeconds,cpuSeconds,gpuSeconds,memoryByteSeconds,egressBytes\r\n";
    for (const UsageRow& row : rows) {
        bool first = true;
        const Json cells = rowJson(row);
        for (const auto& [name, value] : cells.items()) {
            if (!first) text += ',';
            first = false;
            text += csvCell(value);
        }
        text += "\r\n";
    }
    return text;
}

}  // namespace hearth::rest
