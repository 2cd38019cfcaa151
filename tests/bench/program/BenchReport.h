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

/// The result of N clients in a closed loop.
struct ThroughputRow {
    std::string operation;
    unsigned clients = 0;
    std::size_t operations = 0;
    double seconds = 0;
    Summary times;    ///< of one operation, in milliseconds
    BenchCounts how;  ///< by interpreter or by a claim's source

    double perSecond() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0; }
};

/// The bytes that a warm sandbox takes, each value if it could be measured.
struct WarmMemory {
    std::optional<std::uint64_t> pss;     ///< of its processes; shared pages are divided
    std::optional<std::uint64_t> cgroup;  ///< the bytes that the kernel charges to it
    std::optional<std::uint64_t> kernel;  ///< growth of all kernel memory while a pool filled
};

/// The results of a pool of one size.
struct PoolSizeRow {
    unsigned size = 0;
    std::string refused;  ///< the reason why it was not measured; then the rest is empty
    double fill_seconds = 0;
    double refill_seconds = 0;  ///< from the drain request until it is full again
    unsigned refilled = 0;      ///< the number of sandboxes that this made
    Summary claim;
    Summary echo;
    WarmMemory memory;
};

/// The results of a run and its environment, which it lays out as JSON. Not thread-safe.
class BenchReport {
public:
    /// One operation on both sides.
    struct Row {
        std::string series;
        std::vector<double> hearth;
        std::vector<double> docker;
    };

    /// If others take more than this share of the processors, only ratios are shown, no times.
    static constexpr double kMostForeign = 0.15;
    /// The least number of samples for a comparison of both sides' 99th percentiles.
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
    bool allow_busy = false;  ///< times are shown, and marked, although the machine was busy
    bool stopped = false;     ///< by a signal, before its end
    BenchCounts claims;       ///< by source
    std::map<std::string, BenchCounts> interpreters;  ///< of each series
    std::vector<std::string> left_out;                ///< unmeasured parts, with reasons
    std::vector<ThroughputRow> throughput;
    unsigned throughput_pool = 0;  ///< warm sandboxes of the pool that it used
    std::vector<PoolSizeRow> pools;
    std::vector<PoolSizeRow> fake_pools;
    std::vector<ProcessMemory> processes;
    WarmMemory memory;
    std::optional<std::uint64_t> docker_cgroup;  ///< of a container that sleeps

    void add(Side side, const std::string& series, double milliseconds);
    const std::vector<Row>& rows() const { return rows_; }

    /// Returns the larger share of both measurements.
    double foreignShare() const;
    bool trustworthy() const { return foreignShare() <= kMostForeign; }
    bool tellsTimes() const { return trustworthy() || allow_busy; }
    Json document() const;

private:
    std::vector<Row> rows_;  ///< in the order of the report
};

/// Returns Docker's p50 or p99 over Hearth's; nullopt if one side is missing or, for p99, has too
/// few samples.
std::optional<double> ratioP50(const BenchReport::Row& row);
std::optional<double> ratioP99(const BenchReport::Row& row);

/// Returns the value with this many digits after the point.
std::string number(double value, int digits);

/// Returns the report as text for people.
std::string benchTable(const BenchReport& report);

}  // namespace hearth::cli
