#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/cli/BenchOperation.h"
#include "api/cli/HostLoad.h"
#include "api/cli/Statistics.h"
#include "base/Json.h"

namespace hearth::cli {

/// Collects measurements and lays them out. Not thread-safe.
class BenchReport {
public:
    std::string url;
    std::string pool;
    std::string docker_version;   ///< empty: Docker was not measured
    bool same_container = false;  ///< Docker's commands ran in the workspace's own container
    int rounds = 0;
    int warm_claims = 0;
    int cold_claims = 0;
    std::map<std::string, int> interpreters;  ///< how often code ran in which kind
    std::array<double, 3> load{};
    double foreign_share = 0;  ///< of all processors, before the run
    std::vector<ProcessMemory> memory;

    void add(Side side, const std::string& series, double milliseconds);
    std::string table() const;
    Json document() const;

private:
    struct Row {
        std::string series;
        std::vector<double> hearth;
        std::vector<double> docker;
    };
    std::vector<Row> rows_;  ///< in the order of the report
};

}  // namespace hearth::cli
