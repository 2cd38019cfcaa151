#include "api/command/Console.h"
#include "base/Version.h"
#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {
namespace {

std::string mebibytes(std::uint64_t bytes) {
    return number(static_cast<double>(bytes) / 1048576.0, 1) + " MiB";
}

std::string mebibytes(const std::optional<std::uint64_t>& bytes) {
    return bytes ? mebibytes(*bytes) : "";
}

std::string ratio(const std::optional<double>& value) {
    return value ? number(*value, 1) + "x" : "";
}

/// Returns a table with text in the first column and numbers in the others.
Table tableOf(std::vector<std::string> headings) {
    std::vector<Table::Align> columns(headings.size(), Table::Align::Right);
    columns[0] = Table::Align::Left;
    Table table(std::move(headings));
    table.align(std::move(columns));
    return table;
}

std::string counts(const BenchCounts& all) {
    std::string text;
    for (const auto& [kind, count] : all) {
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    }
    return text;
}

std::string operationsText(const BenchReport& report) {
    const bool docker = !report.docker_version.empty();
    const bool times = report.tellsTimes();
    std::vector<std::string> headings = {times ? "MILLISECONDS" : "RATIOS ONLY"};
    if (times) headings.insert(headings.end(), {"P50", "P90", "P99", "MIN"});
    headings.emplace_back("N");
    if (times && docker) headings.insert(headings.end(), {"DOCKER P50", "P90", "P99"});
    if (docker) headings.insert(headings.end(), {"RATIO P50", "P99"});
    Table rows = tableOf(std::move(headings));
    for (const BenchReport::Row& row : report.rows()) {
        const Summary h = summarize(row.hearth);
        const Summary d = summarize(row.docker);
        std::vector<std::string> cells = {row.series};
        const auto cell = [&](const Summary& s, double value) {
            cells.push_back(s.samples > 0 ? number(value, 3) : "");
        };
        if (times) {
            for (const double value : {h.p50, h.p90, h.p99, h.least}) cell(h, value);
        }
        cells.push_back(h.samples > 0 ? std::to_string(h.samples) : "");
        if (times && docker) {
            for (const double value : {d.p50, d.p90, d.p99}) cell(d, value);
        }
        if (docker) cells.insert(cells.end(), {ratio(ratioP50(row)), ratio(ratioP99(row))});
        rows.add(std::move(cells));
    }
    return rows.empty() ? "" : "\n" + rows.text();
}

std::string throughputText(const BenchReport& report) {
    if (report.throughput.empty() || !report.tellsTimes()) return {};
    Table rows =
        tableOf({"THROUGHPUT", "CLIENTS", "PER SECOND", "P50 MS", "P90", "P99", "N", "HOW"});
    for (const ThroughputRow& row : report.throughput) {
        rows.add({row.operation, std::to_string(row.clients), number(row.perSecond(), 0),
                  number(row.times.p50, 2), number(row.times.p90, 2), number(row.times.p99, 2),
                  std::to_string(row.operations), counts(row.how)});
    }
    return "\n" + rows.text() + "from a pool of " + std::to_string(report.throughput_pool) +
           " warm sandboxes, full at the start of each burst of claims\n";
}

std::string poolsText(const std::vector<PoolSizeRow>& pools, const std::string& title, bool times) {
    if (pools.empty()) return {};
    Table rows = tableOf({title, "FILL S", "REFILL S", "REFILL /S", "CLAIM P50 MS", "P99",
                          "ECHO P50 MS", "P99", "PSS EACH", "CGROUP EACH", "KERNEL EACH"});
    std::string refused;
    for (const PoolSizeRow& row : pools) {
        if (!row.refused.empty()) {
            refused +=
                "pool of " + std::to_string(row.size) + " not measured: " + row.refused + "\n";
            continue;
        }
        std::vector<std::string> cells = {std::to_string(row.size)};
        if (times) {
            const double rate = row.refill_seconds > 0 ? row.refilled / row.refill_seconds : 0;
            cells.insert(cells.end(),
                         {number(row.fill_seconds, 2), number(row.refill_seconds, 2),
                          number(rate, 1), number(row.claim.p50, 3), number(row.claim.p99, 3),
                          number(row.echo.p50, 3), number(row.echo.p99, 3)});
        } else {
            cells.insert(cells.end(), 7, "");
        }
        cells.insert(cells.end(), {mebibytes(row.memory.pss), mebibytes(row.memory.cgroup),
                                   mebibytes(row.memory.kernel)});
        rows.add(std::move(cells));
    }
    return "\n" + (rows.empty() ? "" : rows.text()) + refused;
}

std::string memoryText(const BenchReport& report) {
    std::string text;
    if (report.memory.pss || report.memory.cgroup) {
        text += "\nmemory of a warm sandbox:";
        if (report.memory.pss) {
            text += " " + mebibytes(*report.memory.pss) + " PSS of its processes (/proc)";
        }
        if (report.memory.cgroup) {
            text += std::string(report.memory.pss ? "," : "") + " " +
                    mebibytes(*report.memory.cgroup) + " charged to its cgroup (the server's word)";
        }
        text += "\n";
    }
    if (report.docker_cgroup) {
        text += "memory of a Docker container that sleeps: " + mebibytes(*report.docker_cgroup) +
                " charged to its cgroup, without its shim (the Engine's word)\n";
    }
    for (const ProcessMemory& m : report.processes) {
        text += "memory of the " + m.role + " (pid " + std::to_string(m.pid) +
                "): " + mebibytes(m.pss_bytes) + " PSS\n";
    }
    return text;
}

}  // namespace

std::string benchTable(const BenchReport& report) {
    std::string text = std::string("Hearth ") + kHearthVersion + ", a server of its own";
    if (!report.server_version.empty()) {
        text = report.url + ", Hearth " + report.server_version + ", pool " + report.pool + " on " +
               report.runtime;
    }
    if (report.rounds > 0) text += ", " + std::to_string(report.rounds) + " rounds";
    if (!report.docker_version.empty()) {
        text += ", against Docker " + report.docker_version + ", docker exec in " +
                (report.same_container ? "the workspace's own container" : "another container");
    }
    text += "\n" + std::to_string(report.processors) + " processors, load average " +
            number(report.load_before[0], 2) + " before and " + number(report.load_after[0], 2) +
            " after; others used " + number(100 * report.foreign_before, 0) +
            " % of the processors before" +
            (report.stopped ? "" : " and " + number(100 * report.foreign_after, 0) + " % after") +
            " the run\n";
    if (report.stopped) text += "stopped early: what follows is what there was\n";
    if (!report.trustworthy()) {
        text += report.allow_busy
                    ? "the machine was busy: do not trust the times, only the ratios\n"
                    : "the machine was busy: times are not told, only ratios; run it when nothing "
                      "else does, or give --allow-busy\n";
    }
    text += operationsText(report) + throughputText(report) +
            poolsText(report.pools, "POOL OF", report.tellsTimes()) +
            poolsText(report.fake_pools, "FAKE POOL OF", report.tellsTimes()) + memoryText(report);
    if (!report.claims.empty()) text += "claims: " + counts(report.claims) + "\n";
    if (!report.interpreters.empty()) {
        text += "interpreters:";
        for (const auto& [series, kinds] : report.interpreters) {
            text += (text.back() == ':' ? " " : "; ") + series + " " + counts(kinds);
        }
        text += "\n";
    }
    for (const std::string& why : report.left_out) text += "left out: " + why + "\n";
    return text;
}

}  // namespace hearth::cli
