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
/// for work in a claimed one. Numpy has a pool and a workspace of its own, and so do parked shells
/// if the measured pool keeps none. The destructor removes them. Not thread-safe.
class BenchServer {
public:
    /// Opens a workspace of `pool` (empty: the server's default) and tries Python in it.
    BenchServer(Remote& remote, const std::string& pool);
    BenchServer(const BenchServer&) = delete;
    BenchServer& operator=(const BenchServer&) = delete;

    /// Makes the pool whose interpreters have imported numpy. Returns the reason if that is
    /// impossible; empty otherwise.
    std::string prepareNumpy();
    /// Finds a workspace with parked shells, or makes a pool for it. Returns the reason if that is
    /// impossible; empty otherwise.
    std::string prepareShells();
    /// Returns the operations of these names (BenchPlan::names). They refer to this object.
    std::vector<BenchOperation> operations(const std::set<std::string>& names);
    /// Waits until the pool has a warm sandbox, if it keeps any. Throws Error(Deadline) if none
    /// comes.
    void waitUntilWarm();
    /// Waits a few seconds at most until no sandbox of the pool is being made or removed.
    void rest() { waitUntilAtRest(remote_, pool_); }
    const std::string& pool() const { return pool_; }
    const std::string& sandbox() const { return sandbox_; }
    bool hasPython() const { return has_python_; }
    /// Returns the memory charged to a sandbox just after its claim.
    std::uint64_t memoryBytes() const { return memory_bytes_; }
    /// Returns the claims by kind of sandbox ("warm", "cold"), warm-up included.
    const BenchCounts& claims() const { return claims_; }
    /// Returns for each series how often its work ran in which kind of interpreter.
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
    bool keeps_warm_ = false;  ///< its pool keeps warm sandboxes
    std::uint64_t memory_bytes_ = 0;
    bool has_python_ = true;
    BenchCounts claims_;
    std::string context_;  ///< made on its first use
    std::map<std::string, BenchCounts> interpreters_;
    std::unique_ptr<BenchPool> numpy_pool_;
    std::unique_ptr<BenchWorkspace> numpy_;  ///< is destroyed before its pool
    std::string parked_;                     ///< the target for parked shells; or empty
    std::unique_ptr<BenchPool> shell_pool_;
    std::unique_ptr<BenchWorkspace> shells_;  ///< is destroyed before its pool
};

/// A file that both sides write and read back.
struct BenchFile {
    std::string series;  ///< "1 KiB"
    std::string name;
    std::string bytes;
};
const std::vector<BenchFile>& benchFiles();

}  // namespace hearth::cli
