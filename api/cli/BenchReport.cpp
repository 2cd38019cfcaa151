#include "api/cli/BenchReport.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/cli/Console.h"

namespace hearth::cli {
namespace {

constexpr double kMostForeign = 0.15;

/// The order of the rows, whichever operation came first; others follow.
constexpr std::array<std::string_view, 9> kOrder = {"claim",       "close",       "shell",
                                                    "python",      "write 1 KiB", "read 1 KiB",
                                                    "write 1 MiB", "read 1 MiB",  "one shot"};

std::size_t rank(std::string_view series) {
    return static_cast<std::size_t>(std::ranges::find(kOrder, series) - kOrder.begin());
}

std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

std::string mebibytes(std::uint64_t bytes) {
    return number(static_cast<double>(bytes) / 1048576.0, 1) + " MiB";
}

Json summaryJson(const Summary& s) {
    return {{"samples", s.samples}, {"minMs", s.least}, {"meanMs", s.mean}, {"p50Ms", s.p50},
            {"p90Ms", s.p90},       {"p99Ms", s.p99},   {"maxMs", s.most}};
}

}  // namespace

void BenchReport::add(Side side, const std::string& series, double milliseconds) {
    auto row = std::ranges::find(rows_, series, &Row::series);
    if (row == rows_.end()) {
        const auto place = std::ranges::find_if(
            rows_, [&](const Row& other) { return rank(other.series) > rank(series); });
        row = rows_.insert(place, Row{series, {}, {}});
    }
    (side == Side::Hearth ? row->hearth : row->docker).push_back(milliseconds);
}

std::string BenchReport::table() const {
    const bool docker = !docker_version.empty();
    std::string text = url + ", pool " + pool + ", " + std::to_string(rounds) + " rounds";
    if (docker) {
        text += ", against Docker " + docker_version + ", docker exec in " +
                (same_container ? "the workspace's own container" : "another container");
    }
    text += "\nload average " + number(load[0], 2) + ", others used " +
            number(100 * foreign_share, 0) + " % of the processors before the run\n";
    if (foreign_share > kMostForeign) {
        text += "the machine is busy: do not trust the times" +
                std::string(docker ? ", only the ratios" : "") + "\n";
    }
    std::vector<std::string> headings = {"MILLISECONDS", "P50", "P90", "P99", "MIN", "N"};
    if (docker) headings.insert(headings.end(), {"DOCKER P50", "P90", "P99", "RATIO P50"});
    Table rows(headings);
    std::vector<Table::Align> columns(headings.size(), Table::Align::Right);
    columns[0] = Table::Align::Left;
    rows.align(std::move(columns));
    for (const Row& row : rows_) {
        const Summary h = summarize(row.hearth);
        std::vector<std::string> cells = {row.series};
        if (h.samples > 0) {
            cells.insert(cells.end(), {number(h.p50, 3), number(h.p90, 3), number(h.p99, 3),
                                       number(h.least, 3), std::to_string(h.samples)});
        } else {
            cells.insert(cells.end(), 5, "");
        }
        if (const Summary d = summarize(row.docker); docker && d.samples > 0) {
            cells.insert(cells.end(), {number(d.p50, 3), number(d.p90, 3), number(d.p99, 3)});
            cells.push_back(h.p50 > 0 ? number(d.p50 / h.p50, 1) + "x" : "");
        }
        rows.add(std::move(cells));
    }
    text += "\n" + rows.text();
    if (warm_claims + cold_claims > 0) {
        text += "\nclaims: " + std::to_string(warm_claims) + " warm, " +
                std::to_string(cold_claims) + " cold\n";
    }
    if (!interpreters.empty()) {
        text += "interpreters:";
        for (const auto& [kind, count] : interpreters) {
            text += " " + std::to_string(count) + " " + kind;
        }
        text += "\n";
    }
    std::size_t agents = 0;
    std::uint64_t agent_bytes = 0;
    for (const ProcessMemory& m : memory) {
        if (m.role == "agent") {
            ++agents;
            agent_bytes += m.pss_bytes;
        } else {
            text += "memory of the " + m.role + " (pid " + std::to_string(m.pid) +
                    "): " + mebibytes(m.pss_bytes) + " PSS\n";
        }
    }
    if (agents > 0) {
        text +=
            "memory of " + std::to_string(agents) + " agents: " + mebibytes(agent_bytes) + " PSS\n";
    }
    return text;
}

Json BenchReport::document() const {
    Json operations = Json::array();
    for (const Row& row : rows_) {
        Json entry = {{"name", row.series}};
        const Summary h = summarize(row.hearth);
        const Summary d = summarize(row.docker);
        if (h.samples > 0) entry["hearth"] = summaryJson(h);
        if (d.samples > 0) entry["docker"] = summaryJson(d);
        if (h.p50 > 0 && d.samples > 0) entry["ratioP50"] = d.p50 / h.p50;
        operations.push_back(std::move(entry));
    }
    Json processes = Json::array();
    for (const ProcessMemory& m : memory) {
        processes.push_back({{"pid", m.pid}, {"role", m.role}, {"pssBytes", m.pss_bytes}});
    }
    return {{"url", url},
            {"pool", pool},
            {"rounds", rounds},
            {"dockerVersion", docker_version.empty() ? Json(nullptr) : Json(docker_version)},
            {"dockerContainer", docker_version.empty() ? Json(nullptr)
                                : same_container       ? Json("same")
                                                       : Json("own")},
            {"loadAverage", load},
            {"foreignCpuShare", foreign_share},
            {"timesTrustworthy", foreign_share <= kMostForeign},
            {"claims", {{"warm", warm_claims}, {"cold", cold_claims}}},
            {"interpreters", interpreters},
            {"operations", std::move(operations)},
            {"memory", std::move(processes)}};
}

}  // namespace hearth::cli
