#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/command/Options.h"

namespace hearth::cli {

/// The measurements that one call of `hearth-bench` takes.
struct BenchPlan {
    std::set<std::string> names;  ///< of benchNames()
    int rounds = 0;
    std::vector<unsigned> clients;     ///< numbers of clients, each of which is measured
    std::size_t operations = 0;        ///< the most of one kind for each number of clients
    std::vector<unsigned> pools;       ///< sizes on the server
    std::vector<unsigned> fake_pools;  ///< sizes on a private server with fake sandboxes
    std::string pool;                  ///< empty: the server's default
    bool docker = false;
    std::string docker_image;
    std::string docker_rootfs;
    std::optional<pid_t> pid;
    bool json = false;
    std::string svg;  ///< a file; empty: no chart
    bool allow_busy = false;

    bool measuresServer() const { return rounds > 0 || !clients.empty() || !pools.empty(); }
};

/// Returns the names that --only accepts.
const std::vector<std::string>& benchNames();
std::vector<Flag> benchFlags();
/// Returns the plan. Throws UsageError for values that make no sense, alone or together.
BenchPlan benchPlan(const Options& options);

/// Returns "1,4,16" as numbers in that order, without repeats. UsageError names the flag.
std::vector<unsigned> numberList(const std::string& flag, const std::string& text, unsigned most);

}  // namespace hearth::cli
