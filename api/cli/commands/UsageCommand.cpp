#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr double kHour = 3600;
constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMiB = 1024.0 * 1024;

std::string usageTable(const Json& report) {
    using Align = Table::Align;
    Table table(
        {"TENANT", "POOL", "CLAIMS", "SANDBOX-H", "CPU-H", "GPU-H", "MEMORY-GIB-H", "EGRESS-MIB"});
    table.align({Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right,
                 Align::Right, Align::Right});
    for (const Json& row : report.at("items")) {
        table.add({textAt(row, "tenant"), textAt(row, "pool"),
                   numberText(row.value("claims", 0.0), "%.0f"),
                   numberText(row.value("sandboxSeconds", 0.0) / kHour, "%.2f"),
                   numberText(row.value("cpuSeconds", 0.0) / kHour, "%.2f"),
                   numberText(row.value("gpuSeconds", 0.0) / kHour, "%.2f"),
                   numberText(row.value("memoryByteSeconds", 0.0) / kGiB / kHour, "%.2f"),
                   numberText(row.value("egressBytes", 0.0) / kMiB, "%.2f")});
    }
    const std::string times = textAt(report, "since") + " to " + textAt(report, "until");
    if (table.empty()) return "nothing was used from " + printable(times) + "\n";
    return "from " + printable(times) + "\n" + table.text();
}

int usage(const Invocation& call) {
    std::string target = "/v1/usage";
    char sign = '?';
    for (const char* name : {"by", "since", "until"}) {
        const auto value = call.options.get(name);
        if (!value) continue;
        target += sign + (name + ("=" + percentEncode(*value)));
        sign = '&';
    }
    if (call.options.on("csv") && wantsJson(call.options)) {
        throw UsageError("--csv and -o json exclude each other", "use one of them");
    }
    Remote remote(call.options);
    if (call.options.on("csv")) {
        call.console.out << remote.raw("GET", target, {}, {{"Accept", "text/csv"}});
        return kOk;
    }
    const Json report = remote.get(target);
    call.console.out << (wantsJson(call.options) ? jsonText(report) + "\n" : usageTable(report));
    return kOk;
}

}  // namespace

Command makeUsage() {
    return {
        {.name = "usage",
         .arguments = "",
         .summary = "Show how much each tenant used.",
         .details = "  hearth usage --since 7d\n"
                    "  hearth usage --by tenant,pool --since 2026-11-01T00:00:00Z\n"
                    "  hearth usage --since 30d --csv > november.csv\n\n"
                    "In hours of sandboxes, processors, GPUs and memory (GiB). Whole hours of\n"
                    "UTC are kept, for 92 days. Operators see all tenants.",
         .flags = withClientFlags(withOutputFlags(
             {Flag{.name = "by",
                   .value = "WORDS",
                   .help = "A row for each: tenant (default), pool, or tenant,pool",
                   .environment = false},
              Flag{.name = "since",
                   .value = "TIME",
                   .help = "From this time on: RFC 3339, or a duration before now (default 24h)",
                   .environment = false},
              Flag{.name = "until",
                   .value = "TIME",
                   .help = "Up to this time; default: now",
                   .environment = false},
              Flag{.name = "csv", .help = "As CSV, for spreadsheets", .environment = false}},
             true))},
        usage};
}

}  // namespace hearth::cli
