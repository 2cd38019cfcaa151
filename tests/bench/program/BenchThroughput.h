#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {

/// The subject and the limits of a throughput measurement.
struct ThroughputPlan {
    std::vector<unsigned> clients;
    std::size_t operations = 0;  ///< the most of one kind for one number of clients
    bool python = true;          ///< also measures fresh interpreters and contexts
    unsigned most_warm = 0;      ///< the number of sandboxes that memory allows
};

/// Returns the number of warm sandboxes in the pool of a measurement: twice the clients, at least
/// 32, limited by `most_warm`; 0 if that is less than one for each client.
unsigned throughputPoolSize(const ThroughputPlan& plan);

/// Runs N clients, each with a connection of its own, which sends the next request after the last
/// answer: claims and releases in a burst from a full pool, fresh interpreters and contexts with a
/// workspace for each client, and one shots, which also pay for the refill. Each kind ends after
/// the given operations or ten seconds. Every answer is verified. The first wrong one ends the
/// measurement, but a 429 is counted and repeated within the operation's time. Adds each row to the
/// report as soon as it is ready, so that no measured row is lost.
void measureThroughput(Remote& remote, const Json& like, const ThroughputPlan& plan,
                       BenchReport& report, const std::function<void(const std::string&)>& note);

}  // namespace hearth::cli
