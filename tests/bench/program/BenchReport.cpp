#include "tests/bench/program/BenchReport.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/Version.h"

namespace hearth::cli {
namespace {

/// The order of the rows, whatever the order of the operations. Other series follow.
constexpr std::array<std::string_view, 14> kOrder = {
    "no-op", "claim",   "close",       "one shot",    "shell",      "shell parked", "python",
    "numpy", "context", "python cold", "write 1 KiB", "read 1 KiB", "write 1 MiB",  "read 1 MiB"};

std::size_t rank(std::string_view series) {
    return static_cast<std::size_t>(std::ranges::find(kOrder, series) - kOrder.begin());
}

Json orNull(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json orNull(const std::optional<std::uint64_t>& bytes) {
    return bytes ? Json(*bytes) : Json(nullptr);
}

/// Returns the times, or only the number of samples.
Json summaryJson(const Summary& s, bool times) {
    if (!times) return {{"samples", s.samples}};
    return {{"samples", s.samples}, {"minMs", s.least}, {"meanMs", s.mean}, {"p50Ms", s.p50},
            {"p90Ms", s.p90},       {"p99Ms", s.p99},   {"maxMs", s.most}};
}

Json memoryJson(const WarmMemory& memory) {
    return {{"pssBytes", orNull(memory.pss)},
            {"cgroupBytes", orNull(memory.cgroup)},
            {"kernelInclusiveBytes", orNull(memory.kernel)}};
}

Json poolsJson(const std::vector<PoolSizeRow>& rows, bool times) {
    Json all = Json::array();
    for (const PoolSizeRow& row : rows) {
        Json entry = {{"size", row.size}};
        if (!row.refused.empty()) {
            entry["refused"] = row.refused;
            all.push_back(std::move(entry));
            continue;
        }
        if (times) {
            entry["fillSeconds"] = row.fill_seconds;
            entry["refillSeconds"] = row.refill_seconds;
            entry["refilled"] = row.refilled;
        }
        entry["claim"] = summaryJson(row.claim, times);
        entry["echo"] = summaryJson(row.echo, times);
        entry["perWarmSandbox"] = memoryJson(row.memory);
        all.push_back(std::move(entry));
    }
    return all;
}

Json throughputJson(const std::vector<ThroughputRow>& rows, bool times) {
    Json all = Json::array();
    for (const ThroughputRow& row : rows) {
        Json entry = {{"operation", row.operation},
                      {"clients", row.clients},
                      {"operations", row.operations},
                      {"how", row.how}};
        if (times) {
            entry["seconds"] = row.seconds;
            entry["perSecond"] = row.perSecond();
            entry["times"] = summaryJson(row.times, true);
        }
        all.push_back(std::move(entry));
    }
    return all;
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

double BenchReport::foreignShare() const {
    return std::max(foreign_before, foreign_after);
}

std::string number(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

std::optional<double> ratioP50(const BenchReport::Row& row) {
    const Summary h = summarize(row.hearth);
    const Summary d = summarize(row.docker);
    if (h.p50 <= 0 || d.samples == 0) return std::nullopt;
    return d.p50 / h.p50;
}

std::optional<double> ratioP99(const BenchReport::Row& row) {
    const Summary h = summarize(row.hearth);
    const Summary d = summarize(row.docker);
    if (h.p99 <= 0 || std::min(h.samples, d.samples) < BenchReport::kSamplesForP99) {
        return std::nullopt;
    }
    return d.p99 / h.p99;
}

Json BenchReport::document() const {
    const bool times = tellsTimes();
    Json operations = Json::array();
    for (const Row& row : rows_) {
        Json entry = {{"name", row.series}};
        const Summary h = summarize(row.hearth);
        const Summary d = summarize(row.docker);
        if (h.samples > 0) entry["hearth"] = summaryJson(h, times);
        if (d.samples > 0) entry["docker"] = summaryJson(d, times);
        if (const auto ratio = ratioP50(row)) entry["ratioP50"] = *ratio;
        if (const auto ratio = ratioP99(row)) entry["ratioP99"] = *ratio;
        operations.push_back(std::move(entry));
    }
    Json seen = Json::array();
    for (const ProcessMemory& m : processes) {
        seen.push_back({{"pid", m.pid}, {"role", m.role}, {"pssBytes", m.pss_bytes}});
    }
    const bool docker = !docker_version.empty();
    return {{"startedAt", started_at},
            {"benchVersion", kHearthVersion},
            {"serverVersion", orNull(server_version)},
            {"url", url},
            {"pool", orNull(pool)},
            {"image", orNull(image)},
            {"runtime", orNull(runtime)},
            {"runtimeVersion", orNull(runtime_version)},
            {"kernel", kernel},
            {"processors", processors},
            {"rounds", rounds},
            {"stopped", stopped},
            {"dockerVersion", orNull(docker_version)},
            {"dockerContainer", !docker ? Json(nullptr) : Json(same_container ? "same" : "own")},
            {"loadAverage", load_before},
            {"loadAverageAfter", load_after},
            {"foreignCpuShare", foreign_before},
            {"foreignCpuShareAfter", stopped ? Json(nullptr) : Json(foreign_after)},
            {"timesTrustworthy", trustworthy()},
            {"timesTold", times},
            {"leftOut", left_out},
            {"claims", claims},
            {"interpreters", interpreters},
            {"operations", std::move(operations)},
            {"throughput",
             {{"warmSandboxes", throughput_pool}, {"rows", throughputJson(throughput, times)}}},
            {"pools", poolsJson(pools, times)},
            {"fakePools", poolsJson(fake_pools, times)},
            {"memory",
             {{"perWarmSandbox", memoryJson(memory)},
              {"dockerContainerCgroupBytes", orNull(docker_cgroup)},
              {"processes", std::move(seen)}}}};
}

}  // namespace hearth::cli
