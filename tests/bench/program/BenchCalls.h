#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/cli/remote/Remote.h"
#include "base/Error.h"

namespace hearth::cli {

/// Counts by kind: {"zygote": 150}.
using BenchCounts = std::map<std::string, int>;

/// Returns the error for an answer that is not the expected one.
Error wrongAnswer(const std::string& what, const Json& answer);

/// Runs `body` at `target` and verifies status, exit code and output. Returns the answer. Throws if
/// it is not the expected one, or if `interpreter` is given and another one ran it.
Json benchExecute(Remote& remote, const std::string& target, const Json& body,
                  const std::string& expected, const std::string& interpreter = {});

/// The work that the operations of the benchmark run, and the output that it must print.
Json shellWork();
Json commandWork();  ///< the same as a command, which a parked shell may run
Json echoWork();     ///< a program without a shell; a fake sandbox has it, too
Json pythonWork();
Json coldPythonWork();  ///< its environment works only at an interpreter's start
Json numpyWork();
Json contextWork(const std::string& context);
inline constexpr const char* kShellPrints = "hi\n";
inline constexpr const char* kPythonPrints = "1\n";
inline constexpr const char* kNumpyPrints = "6\n";
inline constexpr const char* kPythonCode = "print(1)";
inline constexpr const char* kNumpyCode = "import numpy; print(numpy.arange(4).sum())";

/// Returns "warm" or "cold" from a claim's ledger; "unknown" without one.
std::string claimSource(const Json& answer);

/// One claimed workspace, deleted at the end. Not thread-safe. `remote` must outlive it.
class BenchWorkspace {
public:
    /// Claims a workspace of `pool`; empty: the server's default pool.
    BenchWorkspace(Remote& remote, const std::string& pool);
    /// Takes over an existing workspace. `made` is the server's answer to its claim.
    BenchWorkspace(Remote& remote, Json made);
    ~BenchWorkspace();
    BenchWorkspace(BenchWorkspace&& other) noexcept;
    BenchWorkspace& operator=(BenchWorkspace&&) = delete;

    const Json& made() const { return made_; }
    /// Returns "/v1/workspaces/ws_…".
    const std::string& target() const { return target_; }
    std::string executions() const { return target_ + "/executions"; }
    /// Gives the workspace up: the caller deletes target().
    std::string release() { return std::exchange(target_, {}); }
    std::string newPythonContext();
    /// Returns the bytes that the kernel charges to its cgroup, as the server reports them.
    std::uint64_t memoryBytes();

private:
    Remote& remote_;
    Json made_;
    std::string target_;
};

}  // namespace hearth::cli
