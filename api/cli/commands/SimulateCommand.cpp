#include <fstream>
#include <iomanip>
#include <sstream>

#include "api/cli/commands/Commands.h"
#include "api/command/OutputFormat.h"
#include "api/config/TextFile.h"
#include "base/Error.h"
#include "controller/simulation/Chart.h"
#include "controller/simulation/Comparison.h"
#include "controller/simulation/TraceShape.h"

namespace hearth::cli {
namespace {

using controller::Comparison;
using controller::PolicyResult;
using controller::PoolSpec;
using controller::StartModel;
using controller::Trace;

constexpr std::size_t kMostTraceBytes = 512U << 20U;
constexpr std::int64_t kMostClaims = 10'000'000;
constexpr std::int64_t kMostSeeds = 1000;

/// The pool of a simulation that names none: only the rule decides.
PoolSpec plainPool() {
    PoolSpec spec;
    spec.warm_min = 0;
    spec.warm_max = 200;
    spec.parallel_creates = 16;
    return spec;
}

PoolSpec simulatedPool(const Options& options) {
    const auto path = options.get("pool");
    if (!path) return plainPool();
    constexpr std::size_t kMostPoolBytes = 1U << 20U;
    try {
        const auto pools = controller::parsePoolYaml(readTextFile(*path, kMostPoolBytes), *path);
        if (pools.size() != 1) {
            throw UsageError("--pool " + *path + " has " + std::to_string(pools.size()) + " pools",
                             "give a file with one");
        }
        return pools.front().spec;
    } catch (const Error& e) {
        throw UsageError(e.what(), e.hint());
    }
}

struct Case {
    Trace trace;
    std::uint64_t seed;  ///< for the times of its starts
};

std::vector<Case> casesOf(const Options& options) {
    const auto file = options.get("trace");
    const std::vector<std::string> shapes = options.all("shape");
    if (file.has_value() != shapes.empty()) {
        throw UsageError("give either --trace or --shape",
                         "hearth simulate --shape diurnal --seed 1");
    }
    const auto first = options.number("seed", 1, 0, kMostClaims);
    if (file) {
        try {
            return {{controller::readTrace(readTextFile(*file, kMostTraceBytes), *file),
                     static_cast<std::uint64_t>(first)}};
        } catch (const Error& e) {
            throw UsageError(e.what(), e.hint());
        }
    }
    const auto seeds = options.number("seeds", 1, 1, kMostSeeds);
    std::vector<Case> cases;
    for (const std::string& word : shapes) {
        const auto shape = controller::kTraceShapes.find(word);
        if (!shape) throw UsageError("--shape is \"" + word + "\"", "use diurnal, bursty or rare");
        const auto usual = static_cast<std::int64_t>(usualClaims(*shape));
        const auto claims =
            static_cast<std::size_t>(options.number("claims", usual, 1, kMostClaims));
        for (std::int64_t at = first; at < first + seeds; ++at) {
            const auto seed = static_cast<std::uint64_t>(at);
            cases.push_back({makeTrace(*shape, seed, claims), seed});
        }
    }
    return cases;
}

std::string decimals(double value, int places) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(places) << value;
    return out.str();
}

void addRow(Table& table, const Comparison& all, const std::string& sizing,
            const PolicyResult& of) {
    const auto claims = static_cast<double>(of.claims);
    const double share =
        all.best_static.idle_seconds > 0 ? of.idle_seconds / all.best_static.idle_seconds : 0;
    table.add({all.trace, sizing, std::to_string(of.claims), std::to_string(of.misses),
               decimals(of.missRate(), 5), decimals(of.idle_seconds, 0),
               decimals(of.idle_seconds / claims, 2), decimals(share, 2),
               decimals(static_cast<double>(of.made) / claims, 3)});
}

Json resultJson(const PolicyResult& of) {
    return {{"claims", of.claims},
            {"misses", of.misses},
            {"missRate", of.missRate()},
            {"idleSandboxSeconds", of.idle_seconds},
            {"waitedSeconds", of.waited_seconds},
            {"sandboxes", of.made}};
}

void writeChart(const std::string& path, const std::vector<Comparison>& rows) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << controller::chartOf(rows) << std::flush;
    if (!file) throw UsageError("--svg " + path + " cannot be written", "name a file");
}

void printTrace(const std::vector<Case>& cases, std::ostream& out) {
    if (cases.size() != 1) {
        throw UsageError("--print-trace would print " + std::to_string(cases.size()) + " traces",
                         "give one --shape and one --seed");
    }
    const Trace& trace = cases.front().trace;
    out << "# " << trace.name << "\n" << std::fixed << std::setprecision(3);
    for (const double at : trace.at) out << at << '\n';
}

int simulate(const Invocation& call) {
    const Options& options = call.options;
    if (options.on("print-trace")) {
        printTrace(casesOf(options), call.console.out);
        return kOk;
    }
    const bool json = wantsJson(options);
    PoolSpec spec = simulatedPool(options);
    StartModel starts;
    if (const auto median = options.duration("start")) {
        starts.median_seconds = static_cast<double>(median->count()) / 1000;
    }
    std::vector<Comparison> rows;
    for (const Case& each : casesOf(options)) {
        starts.seed = each.seed;
        rows.push_back(controller::compare(spec, starts, each.trace));
    }
    if (const auto svg = options.get("svg")) writeChart(*svg, rows);
    Json items = Json::array();
    using Align = Table::Align;
    Table table({"TRACE", "SIZING", "CLAIMS", "MISSES", "MISS RATE", "IDLE S", "IDLE S/CLAIM",
                 "OF STATIC", "MADE/CLAIM"});
    table.align({Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right,
                 Align::Right, Align::Right, Align::Right});
    for (const Comparison& row : rows) {
        const std::string size = "Static " + std::to_string(row.static_size);
        addRow(table, row, size, row.best_static);
        addRow(table, row, "Predictive", row.predictive);
        addRow(table, row, "Clairvoyant", row.clairvoyant);
        items.push_back({{"trace", row.trace},
                         {"staticSize", row.static_size},
                         {"static", resultJson(row.best_static)},
                         {"predictive", resultJson(row.predictive)},
                         {"clairvoyant", resultJson(row.clairvoyant)}});
    }
    if (json) {
        call.console.out << jsonText(Json{{"items", items}}) << '\n';
    } else {
        call.console.out << table.text();
    }
    return kOk;
}

}  // namespace

Command makeSimulate() {
    return {
        {.name = "simulate",
         .arguments = "",
         .summary = "Compare ways of sizing a pool on a trace of claims.",
         .details =
             "  hearth simulate --trace traces/python.trace --pool pool.yaml\n"
             "  hearth simulate --shape bursty --seed 1 --svg chart.svg\n\n"
             "Replays the claims on a fake clock with the server's own rules: Predictive, the\n"
             "smallest Static size that misses no larger share of them, and Clairvoyant, which\n"
             "knows them in advance, misses none and starts each sandbox as late as it can.\n"
             "A miss is a claim that finds no ready sandbox; the price is the time that ready\n"
             "sandboxes wait. A trace has one arrival per line: seconds since the start or\n"
             "2026-01-05T08:00:00.250Z, ascending; # begins a comment. `hearth serve\n"
             "--record-traces DIR` writes them. Without --pool: min 0, max 200,\n"
             "parallelCreates 16, missRate 0.001. Of a pool only warm, sizing, schedules and\n"
             "onEmpty.action are used.",
         .flags = withOutputFlags(
             {ownFlag("trace", 0, "FILE", "A recorded trace; - for standard input"),
              ownFlag("pool", 0, "FILE", "The manifest of the pool"),
              Flag{.name = "shape",
                   .value = "SHAPE",
                   .help = "Make a trace: diurnal, bursty or rare",
                   .repeats = true,
                   .environment = false,
                   .choices = controller::kTraceShapes.all()},
              ownFlag("seed", 0, "N", "The seed of the made trace; 1 by default"),
              ownFlag("seeds", 0, "N", "The number of traces: this seed and the ones after it"),
              ownFlag("claims", 0, "N", "Claims of a made trace; 100000 or more by default"),
              ownFlag("start", 0, "DURATION", "The median time of a start; 3s by default"),
              ownFlag("print-trace", 0, "", "Print the trace and compare nothing"),
              ownFlag("svg", 0, "FILE", "Also draw the idle time")})},
        simulate};
}

}  // namespace hearth::cli
