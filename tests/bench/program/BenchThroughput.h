#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {

/// What the throughput is measured of.
struct ThroughputPlan {
    std::vector<unsigned> clients;
    std::size_t operations = 0;  ///< the most of one kind at one number of clients
    bool python = true;          ///< also fresh interpreters and contexts
    unsigned most_warm = 0;      ///< as many sandboxes as memory allows
};

/// How many warm sandboxes the pool of a measurement has: twice the clients, not under 32, as far
/// as `most_warm` allows; 0 if that is not even one for each client.
unsigned throughputPoolSize(const ThroughputPlan& plan);

/// N clients, each with a connection of its own and the next request sent when the last was
/// answered: claims and releases in a burst from a full pool, fresh interpreters and contexts with
/// a workspace for each client, and one shots, which also pay for the refill. Each kind ends after
/// that many operations or ten seconds. Every answer is verified; the first wrong one ends it, but
/// a 429 is counted and tried again, within the operation's time. Adds rows to the report as they
/// are ready, so that what was measured is not lost.
void measureThroughput(Remote& remote, const Json& like, const ThroughputPlan& plan,
                       BenchReport& report, const std::function<void(const std::string&)>& note);

}  // namespace hearth::cli
