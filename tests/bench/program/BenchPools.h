#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {

/// Returns how many more sandboxes of `each` bytes fit into `available`. An eighth of it, and at
/// least 512 MiB, is left for others.
unsigned sandboxesThatFit(std::uint64_t available, std::uint64_t each);

/// The sizes to measure, and the memory that limits them.
struct PoolsPlan {
    std::vector<unsigned> sizes;
    /// The bytes to expect of each sandbox; 0: not checked, as the sandboxes are fake.
    std::uint64_t each = 0;
};

/// For each size: makes a pool of that many sandboxes with the template of `like`, measures the
/// time until all are warm, claims from the full pool, runs an `echo` in a workspace beside it,
/// reads the memory, and measures the time from the request to drain it until it is full again. A
/// size that does not fit into memory is refused in its row. Sizes follow one another, and nothing
/// else should run meanwhile. Each row is added as soon as it is ready.
void measurePools(Remote& remote, const Json& like, const PoolsPlan& plan,
                  std::vector<PoolSizeRow>& rows,
                  const std::function<void(const std::string&)>& note);

}  // namespace hearth::cli
