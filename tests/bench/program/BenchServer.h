#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/program/BenchCalls.h"
#include "tests/bench/program/BenchOperation.h"
#include "tests/bench/program/BenchPool.h"

namespace hearth::cli {

/// Hearth's side of the interleaved rounds: one client, one kept-alive connection, one workspace
/// for what runs in a claimed one, and for numpy a pool and a workspace of its own, as for parked
/// shells where the measured pool keeps none. The destructor removes them. Not thread-safe.
class BenchServer {
public:
    /// `pool` empty: the server's default. Opens the workspace and tries Python in it.
    BenchServer(Remote& remote, const std::string& pool);
    BenchServer(const BenchServer&) = delete;
    BenchServer& operator=(const BenchServer&) = delete;

    /// Makes the pool whose interpreters have imported numpy, or gives the reason why it cannot be
    /// had.
    std::string prepareNumpy();
    /// Finds a workspace where shells are parked, or makes a pool for it; or gives the reason why
    /// it cannot be had.
    std::string prepareShells();
    /// The operations of those names (BenchPlan::names); they refer to this object.
    std::vector<BenchOperation> operations(const std::set<std::string>& names);
    /// Waits, for a while, until no sandbox of the pool is being made or removed.
    void rest() { waitUntilAtRest(remote_, pool_); }
    const std::string& pool() const { return pool_; }
    const std::string& sandbox() const { return sandbox_; }
    bool hasPython() const { return has_python_; }
    /// What a sandbox was charged with when it had just been claimed.
    std::uint64_t memoryBytes() const { return memory_bytes_; }
    /// How many of the claims, warm-up included, found which kind of sandbox ("warm", "cold").
    const BenchCounts& claims() const { return claims_; }
    /// How often work of each series ran in which kind of interpreter.
    const std::map<std::string, BenchCounts>& interpreters() const { return interpreters_; }

private:
    void run(const Record& record, const std::string& series, const std::string& target,
             const Json& work, const std::string& expected, const std::string& interpreter = {});
    void claim(const Record& record);
    void oneShot(const Record& record);
    void context(const Record& record);
    void files(const Record& record);

    Remote& remote_;
    BenchWorkspace workspace_;
    std::string pool_;
    std::string sandbox_;
    std::uint64_t memory_bytes_ = 0;
    bool has_python_ = true;
    BenchCounts claims_;
    std::string context_;  ///< made when it is first needed
    std::map<std::string, BenchCounts> interpreters_;
    std::unique_ptr<BenchPool> numpy_pool_;
    std::unique_ptr<BenchWorkspace> numpy_;  ///< goes before its pool
    std::string parked_;                     ///< where commands run in parked shells; or empty
    std::unique_ptr<BenchPool> shell_pool_;
    std::unique_ptr<BenchWorkspace> shells_;  ///< goes before its pool
};

/// The contents that both sides write and read back.
struct BenchFile {
    std::string series;  ///< "1 KiB"
    std::string name;
    std::string bytes;
};
const std::vector<BenchFile>& benchFiles();

}  // namespace hearth::cli
