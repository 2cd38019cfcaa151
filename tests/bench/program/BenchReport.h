#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Json.h"
#include "tests/bench/program/BenchCalls.h"
#include "tests/bench/program/BenchOperation.h"
#include "tests/bench/program/measure/HostMemory.h"
#include "tests/bench/program/measure/Statistics.h"

namespace hearth::cli {

/// What N clients did in a closed loop.
struct ThroughputRow {
    std::string operation;
    unsigned clients = 0;
    std::size_t operations = 0;
    double seconds = 0;
    Summary times;    ///< of one operation, in milliseconds
    BenchCounts how;  ///< by interpreter or by a claim's source

    double perSecond() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0; }
};

/// Bytes a warm sandbox takes, each as far as it could be seen.
struct WarmMemory {
    std::optional<std::uint64_t> pss;     ///< its processes; shared pages are spread
    std::optional<std::uint64_t> cgroup;  ///< what the kernel charges it with
    std::optional<std::uint64_t> kernel;  ///< growth of all the kernel holds, while a pool filled
};

/// What a pool of one size showed.
struct PoolSizeRow {
    unsigned size = 0;
    std::string refused;  ///< why it was not measured; then the rest is empty
    double fill_seconds = 0;
    double refill_seconds = 0;  ///< from the request to drain it until it is full again
    unsigned refilled = 0;      ///< how many sandboxes that brought
    Summary claim;
    Summary echo;
    WarmMemory memory;
};

/// What a run showed and where: collects, and lays it out as JSON. Not thread-safe.
class BenchReport {
public:
    /// One operation, on both sides.
    struct Row {
        std::string series;
        std::vector<double> hearth;
        std::vector<double> docker;
    };

    /// Above this share of the processors taken by others no times are told, only ratios.
    static constexpr double kMostForeign = 0.15;
    /// Both sides' 99th percentiles are compared from this many samples on.
    static constexpr std::size_t kSamplesForP99 = 300;

    std::string url;
    std::string pool;
    std::string image;
    std::string server_version;
    std::string runtime;
    std::string runtime_version;
    std::string docker_version;   ///< empty: Docker was not measured
    bool same_container = false;  ///< Docker's commands ran in the workspace's own container
    int rounds = 0;
    std::string started_at;  ///< RFC 3339
    std::string kernel;
    unsigned processors = 0;
    std::array<double, 3> load_before{};
    std::array<double, 3> load_after{};
    double foreign_before = 0;
    double foreign_after = 0;
    bool allow_busy = false;  ///< times are told, and marked, though the machine was busy
    bool stopped = false;     ///< by a signal, before its end
    BenchCounts claims;       ///< by source
    std::map<std::string, BenchCounts> interpreters;  ///< of each series
    std::vector<std::string> left_out;                ///< what was not measured, and why
    std::vector<ThroughputRow> throughput;
    unsigned throughput_pool = 0;  ///< warm sandboxes of its pool
    std::vector<PoolSizeRow> pools;
    std::vector<PoolSizeRow> fake_pools;
    std::vector<ProcessMemory> processes;
    WarmMemory memory;
    std::optional<std::uint64_t> docker_cgroup;  ///< of a container that sleeps

    void add(Side side, const std::string& series, double milliseconds);
    const std::vector<Row>& rows() const { return rows_; }

    /// The larger share of both measurements.
    double foreignShare() const;
    bool trustworthy() const { return foreignShare() <= kMostForeign; }
    bool tellsTimes() const { return trustworthy() || allow_busy; }
    Json document() const;

private:
    std::vector<Row> rows_;  ///< in the order of the report
};

/// Docker's p50 or p99 over Hearth's; nullopt where one side is missing or, for p99, has too few
/// samples.
std::optional<double> ratioP50(const BenchReport::Row& row);
std::optional<double> ratioP99(const BenchReport::Row& row);

/// With so many digits after the point.
std::string number(double value, int digits);

/// The report for people.
std::string benchTable(const BenchReport& report);

}  // namespace hearth::cli
