#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {

/// How many more sandboxes of `each` bytes fit into `available`, of which an eighth, and not less
/// than 512 MiB, is left to everybody else.
unsigned sandboxesThatFit(std::uint64_t available, std::uint64_t each);

/// What sets the limits of sizes.
struct PoolsPlan {
    std::vector<unsigned> sizes;
    /// Bytes to expect of each sandbox; 0: not looked at, for they are fake.
    std::uint64_t each = 0;
};

/// For each size: makes a pool of that many sandboxes with the template of `like`, takes the time
/// until all are warm, claims from the full pool, runs an `echo` in a workspace beside it, looks at
/// the memory, and takes the time from the request to drain it until it is full again. A size that
/// memory does not allow is refused in its row. Sizes follow one another; nothing else should run
/// meanwhile. Rows are added as they are ready.
void measurePools(Remote& remote, const Json& like, const PoolsPlan& plan,
                  std::vector<PoolSizeRow>& rows,
                  const std::function<void(const std::string&)>& note);

}  // namespace hearth::cli
