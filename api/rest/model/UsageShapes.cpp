#include <string_view>

#include "api/rest/model/Answers.h"
#include "base/Units.h"

namespace hearth::rest {
namespace {

using controller::UsageRow;
using controller::UsageSums;

double thousandths(std::uint64_t value) {
    return static_cast<double>(value) / 1e3;
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

static void listFields(Shape<UsageRow>& shape) {
    const auto sum = [](auto member) {
        return [member](const UsageRow& row) { return row.sums.*member; };
    };
    shape.schema().named("UsageRow");
    shape.orNull("tenant", &UsageRow::tenant, "null: all, if not by tenant")
        .orNull("pool", &UsageRow::pool, "null: all, if not by pool")
        .field("claims", sum(&UsageSums::claims))
        .field("sandboxSeconds", sum(&UsageSums::sandbox_ms),
               {thousandths, "From the claim to the end"})
        .field("cpuSeconds", sum(&UsageSums::cpu_us),
               {[](std::uint64_t us) { return static_cast<double>(us) / 1e6; }})
        .field("gpuSeconds", sum(&UsageSums::gpu_ms), {thousandths, "For each device"})
        .field("memoryByteSeconds", sum(&UsageSums::memory_kib_secs),
               {[](std::uint64_t kib) { return static_cast<double>(kib) * 1024; },
                "Memory in use times its time"})
        .field("egressBytes", sum(&UsageSums::egress_bytes), "Both ways");
}

Schema usageReportSchema() {
    return Schema::object()
        .required("since", Schema::string(kDateTime).describe("The hour that it begins with"))
        .required("until", Schema::string(kDateTime))
        .required("by", Schema::array(Schema::oneOf({"tenant", "pool"})))
        .required("items", schemaOf<std::vector<UsageRow>>())
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
    const std::int64_t begin = toUnixMillis(query.since) / kHourMs * kHourMs;
    return {{"since", formatUnixMillis(begin)},
            {"until", formatRfc3339(query.until.value_or(now))},
            {"by", std::move(by)},
            {"items", jsonOf(rows)}};
}

std::string usageReportCsv(const std::vector<UsageRow>& rows) {
    std::string text =
        "tenant,pool,claims,sandboxSeconds,cpuSeconds,gpuSeconds,memoryByteSeconds,egressBytes\r\n";
    for (const UsageRow& row : rows) {
        bool first = true;
        const Json cells = jsonOf(row);
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
